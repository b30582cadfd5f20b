"""What serves and tunes in the background of a process, without torch: described calls, jobs, policies, neighbours."""
