// Early-return helpers for absl::Status and absl::StatusOr.
//
// THALWEG_RETURN_IF_ERROR(expr)          returns the status of `expr` from the enclosing function unless it is OK.
// THALWEG_ASSIGN_OR_RETURN(lhs, expr)    assigns the value of a StatusOr to `lhs`, or returns its status.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define THALWEG_RETURN_IF_ERROR(expr)                          \
  do {                                                         \
    ::absl::Status thalweg_status_ = (expr);                   \
    if (__builtin_expect(!thalweg_status_.ok(), 0)) return thalweg_status_; \
  } while (0)

#define THALWEG_CONCAT_INNER_(a, b) a##b
#define THALWEG_CONCAT_(a, b) THALWEG_CONCAT_INNER_(a, b)
#define THALWEG_ASSIGN_OR_RETURN(lhs, expr) \
  THALWEG_ASSIGN_OR_RETURN_IMPL_(THALWEG_CONCAT_(thalweg_statusor_, __LINE__), lhs, expr)
#define THALWEG_ASSIGN_OR_RETURN_IMPL_(statusor, lhs, expr)            \
  auto statusor = (expr);                                              \
  if (__builtin_expect(!statusor.ok(), 0)) return std::move(statusor).status(); \
  lhs = std::move(statusor).value()
