"""`python -m dsload` is the dsload program, as the console script is."""

from ._binary import main

main()
