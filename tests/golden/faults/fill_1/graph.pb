
5

n10_dims_0Placeholder*
dtype0	*
shape:
;
n10_value_0Const*
dtype0*
valueBj€
?
n10Fill
n10_dims_0n10_value_0*
T0*

index_type0	"ª