"""The sections of a report, one module each: functions from a results document to blocks."""
