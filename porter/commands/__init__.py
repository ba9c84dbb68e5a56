"""The verbs of the command line, one file each; a verb parses, calls the Python API and prints."""
