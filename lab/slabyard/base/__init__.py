"""What every package stands on: errors, child processes, files, tables, SVG, HTML, the terminal. It imports nothing of the lab."""
