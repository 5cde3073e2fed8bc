"""Other people's frameworks, each imported by name only and with its extra: opacus, transformers, lightning, dp_accounting."""
