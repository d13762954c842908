
7
pool_value_0Placeholder*
dtype0*
shape:
x
poolAvgPoolpool_value_0*
T0*
data_formatNCHW*
ksize
*
paddingSAME*
strides
"ª