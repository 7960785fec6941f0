"""What is made of a version: wheel, source archive, wheelhouse, one file, packages (``make dist``)."""
