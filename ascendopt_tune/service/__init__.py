"""What serves and tunes in the background of a process, and needs no torch: described calls, jobs, policies, neighbours."""
