"""Who holds memory in a trace: its caches, call sites and tasks; the pages that objects pin; exports of it to other tools."""
