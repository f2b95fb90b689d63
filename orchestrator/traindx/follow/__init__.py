"""`traindx diagnose LOG --follow`: a log that is still written, and what is found in it as it comes."""
