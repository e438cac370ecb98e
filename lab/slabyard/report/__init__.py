"""Result records for people: tables of text, the HTML report, drawings."""
