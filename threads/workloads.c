/* The table of workloads: adding one is a file, and a line here. What each does stands at the head of its file. */
#include "work.h"

extern const struct workload workload_hot, workload_lifo, workload_fifo, workload_shuffled, workload_larson, workload_pipe, workload_collect;
extern const struct workload workload_exchange, workload_hackbench, workload_scratch, workload_ageing;
extern const struct workload workload_together, workload_scattered, workload_collapse, workload_trace;

const struct workload *const workloads[] = {
	&workload_hot,      &workload_lifo,      &workload_fifo,      &workload_shuffled, &workload_exchange,
	&workload_larson,   &workload_pipe,      &workload_collect,   &workload_hackbench, &workload_scratch,
	&workload_ageing,   &workload_together,  &workload_scattered, &workload_collapse, &workload_trace, NULL,
};
