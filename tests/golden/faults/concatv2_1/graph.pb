
\
n14_values_0Placeholder*
dtype0*2
shape):'ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
7
n14_values_1Placeholder*
dtype0*
shape:
S
n14_values_2Placeholder*
dtype0*)
shape :ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
A
n14_values_3Placeholder*
dtype0*
shape:
7

n14_axis_0Placeholder*
dtype0*
shape:
q
n14ConcatV2n14_values_0n14_values_1n14_values_2n14_values_3
n14_axis_0*
N*

Tidx0*
T0"ª