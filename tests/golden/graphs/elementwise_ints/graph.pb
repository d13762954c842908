
3
x_int8Placeholder*
dtype0*
shape:
3
y_int8Placeholder*
dtype0*
shape:
-
add_v2_int8AddV2x_int8y_int8*
T0
(
sub_int8Subx_int8y_int8*
T0
(
mul_int8Mulx_int8y_int8*
T0
3
floor_div_int8FloorDivx_int8y_int8*
T0
3
floor_mod_int8FloorModx_int8y_int8*
T0
7
bitwise_xor_int8
BitwiseXorx_int8y_int8*
T0
0
maximum_int8Maximumx_int8y_int8*
T0
5
truncate_int8TruncateDivx_int8y_int8*
T0
7
	ones_likeConst*
dtype0*
valueB:
4

shift_int8
RightShiftx_int8	ones_like*
T0
4
x_uint8Placeholder*
dtype0*
shape:
4
y_uint8Placeholder*
dtype0*
shape:
0
add_v2_uint8AddV2x_uint8y_uint8*
T0
+
	sub_uint8Subx_uint8y_uint8*
T0
+
	mul_uint8Mulx_uint8y_uint8*
T0
6
floor_div_uint8FloorDivx_uint8y_uint8*
T0
6
floor_mod_uint8FloorModx_uint8y_uint8*
T0
:
bitwise_xor_uint8
BitwiseXorx_uint8y_uint8*
T0
3
maximum_uint8Maximumx_uint8y_uint8*
T0
9
ones_like_1Const*
dtype0*
valueB:
8
shift_uint8
RightShiftx_uint8ones_like_1*
T0
4
x_int16Placeholder*
dtype0*
shape:
4
y_int16Placeholder*
dtype0*
shape:
0
add_v2_int16AddV2x_int16y_int16*
T0
+
	sub_int16Subx_int16y_int16*
T0
+
	mul_int16Mulx_int16y_int16*
T0
6
floor_div_int16FloorDivx_int16y_int16*
T0
6
floor_mod_int16FloorModx_int16y_int16*
T0
:
bitwise_xor_int16
BitwiseXorx_int16y_int16*
T0
3
maximum_int16Maximumx_int16y_int16*
T0
8
truncate_int16TruncateDivx_int16y_int16*
T0
9
ones_like_2Const*
dtype0*
valueB:
8
shift_int16
RightShiftx_int16ones_like_2*
T0
4
x_int32Placeholder*
dtype0*
shape:
4
y_int32Placeholder*
dtype0*
shape:
0
add_v2_int32AddV2x_int32y_int32*
T0
+
	sub_int32Subx_int32y_int32*
T0
+
	mul_int32Mulx_int32y_int32*
T0
6
floor_div_int32FloorDivx_int32y_int32*
T0
6
floor_mod_int32FloorModx_int32y_int32*
T0
:
bitwise_xor_int32
BitwiseXorx_int32y_int32*
T0
3
maximum_int32Maximumx_int32y_int32*
T0
8
truncate_int32TruncateDivx_int32y_int32*
T0
9
ones_like_3Const*
dtype0*
valueB:
8
shift_int32
RightShiftx_int32ones_like_3*
T0
4
x_int64Placeholder*
dtype0	*
shape:
4
y_int64Placeholder*
dtype0	*
shape:
0
add_v2_int64AddV2x_int64y_int64*
T0	
+
	sub_int64Subx_int64y_int64*
T0	
+
	mul_int64Mulx_int64y_int64*
T0	
6
floor_div_int64FloorDivx_int64y_int64*
T0	
6
floor_mod_int64FloorModx_int64y_int64*
T0	
:
bitwise_xor_int64
BitwiseXorx_int64y_int64*
T0	
3
maximum_int64Maximumx_int64y_int64*
T0	
8
truncate_int64TruncateDivx_int64y_int64*
T0	
9
ones_like_4Const*
dtype0	*
valueB	R
8
shift_int64
RightShiftx_int64ones_like_4*
T0	"ª