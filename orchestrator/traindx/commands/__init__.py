"""The commands of `traindx`, one file each: they read options, call the API and print. No logic lives here."""
