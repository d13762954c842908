
F
n28_concat_dim_0Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
9
n28_values_0Placeholder*
dtype0*
shape:
B
n28_values_1Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
<
n28_values_2Const*
dtype0*
valueBj€€
B
n28_values_3Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
i
n28Concatn28_concat_dim_0n28_values_0n28_values_1n28_values_2n28_values_3*
N*
T0"ª