"""Services of the host: forks, memory, files, arrays of other libraries, variables of Python functions."""
