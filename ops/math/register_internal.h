// The parts of RegisterMathOps, one per source file.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg::math {

void RegisterAddOps(OpLibrary& lib);             // Add, AddV2, Sub
void RegisterAddNOp(OpLibrary& lib);
void RegisterMultiplyOps(OpLibrary& lib);        // Mul, RealDiv, SquaredDifference, Square
void RegisterExtremumOps(OpLibrary& lib);        // Maximum, Minimum
void RegisterIntegerDivisionOps(OpLibrary& lib); // FloorDiv, FloorMod, Div, TruncateDiv ...
void RegisterPowOp(OpLibrary& lib);
void RegisterEqualityOps(OpLibrary& lib);        // Equal, NotEqual
void RegisterOrderOps(OpLibrary& lib);           // Less ...
void RegisterLogicalOps(OpLibrary& lib);         // LogicalAnd ...
void RegisterSignOps(OpLibrary& lib);            // Neg, Abs, Sign
void RegisterRoundingOps(OpLibrary& lib);        // Floor, Ceil, IsNan ...
void RegisterTranscendentalOps(OpLibrary& lib);  // Exp, Log, Tanh ...
void RegisterComplexTranscendentalOps(OpLibrary& lib);
void RegisterActivationOps(OpLibrary& lib);      // Relu, Elu ...
void RegisterCastOp(OpLibrary& lib);
void RegisterSelectOps(OpLibrary& lib);          // Select, SelectV2
void RegisterLikeOps(OpLibrary& lib);            // ZerosLike, OnesLike
void RegisterCheckNumericsOp(OpLibrary& lib);
void RegisterSumOps(OpLibrary& lib);             // Sum, Mean, Prod
void RegisterMaxOps(OpLibrary& lib);             // Max, Min, All, Any
void RegisterArgExtremumOps(OpLibrary& lib);     // ArgMax, ArgMin
void RegisterScanOps(OpLibrary& lib);            // Cumsum, Cumprod

}  // namespace thalweg::math
