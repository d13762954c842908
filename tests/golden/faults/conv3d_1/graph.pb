
6
n22_input_0Placeholder*
dtype0*
shape:
I
n22_filter_0Placeholder*
dtype0*
shape:
‹
n22Conv3Dn22_input_0n22_filter_0*
T0*
data_formatNDHWC*
	dilations	
*
paddingVALID*
strides	
"ª