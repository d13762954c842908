
6
n14_input_0Placeholder*
dtype0*
shape:
<
n14_ksize_0Placeholder*
dtype0*
shape
:
:
n14_strides_0Placeholder*
dtype0*
shape:
l
n14	MaxPoolV2n14_input_0n14_ksize_0n14_strides_0*
T0*
data_formatNHWC*
paddingSAME"ª