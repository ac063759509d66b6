"""What lies beneath: forks, memory, files, arrays of other libraries, variables of Python functions."""
