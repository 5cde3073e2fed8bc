"""Pictures of runs, sweeps, losses and audits, drawn with matplotlib."""
