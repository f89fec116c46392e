"""More than one process or machine for a run: processes, Ray workers, devices and memory."""
