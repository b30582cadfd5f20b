"""Where operators come from, and how they are read: the registry, users' folders, arguments, C++ as a syntax tree."""
