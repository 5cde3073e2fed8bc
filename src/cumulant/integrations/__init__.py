"""Other people's frameworks, each imported by name only and with the extra of that name: opacus, dp_accounting."""
