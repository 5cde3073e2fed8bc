"""The page `cumulant serve`, and the questions that other languages ask it. Needs cumulant[web]."""
