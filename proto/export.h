// Marks what libthalweg.so exports: the classes and functions of the public headers (cmake/ThalwegLibrary.cmake lists
// them). Everything else is hidden.
#pragma once

#define THALWEG_EXPORT __attribute__((visibility("default")))
