"""From a live kernel, or from what perf or tracefs wrote of one, to a trace."""
