"""The functions of `import counterfoil as cf`, a module per group of jobs.

Every function calls the task of the same name as the command line does, with the same defaults: finished work
is kept in the user's cache, notes and progress go to standard error. Errors are one line
(`counterfoil.errors.CounterfoilError`).
"""
