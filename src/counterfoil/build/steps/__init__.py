"""The steps of builds, one module each; `registry` has their names."""
