
	
nNoOp