// Marks what libthalweg.so exports; everything else is hidden.
#pragma once

#define THALWEG_EXPORT __attribute__((visibility("default")))
