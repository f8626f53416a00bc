"""One ranked file for a fleet of devices that differ in memory, speed and patience."""
