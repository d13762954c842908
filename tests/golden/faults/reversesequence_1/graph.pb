
<
n39_input_0Placeholder*
dtype0	*
shape
:
<
n39_seq_lengths_0Placeholder*
dtype0*
shape:
k
n39ReverseSequencen39_input_0n39_seq_lengths_0*

Tlen0*
T0	*
	batch_dim*
seq_dim"ª