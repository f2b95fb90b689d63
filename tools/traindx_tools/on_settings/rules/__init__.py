"""One file an observation of settings (S101...): each takes a `SettingsSeen` and tells what does not arrive."""
