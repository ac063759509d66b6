"""Looking at motion: an interactive viewer in the browser, and recordings that need nothing but one."""
