/* Starting the ranks of a job. */
#ifndef HEMT_SPAWN_H
#define HEMT_SPAWN_H

#include "job.h"
#include "place.h"

/** Start all ranks. If one cannot be, the job has its trouble and what runs is killed. */
void hemt_spawn_all(hemt_job *job, const hemt_place *place);

#endif
