/* What `hem run` says at the end of a job. */
#ifndef HEMT_REPORT_H
#define HEMT_REPORT_H

#include "job.h"

/** For every rank, a line or more about what it is in. The caller frees it; NULL without memory. */
char *hemt_report_job(const hemt_job *job);

/** Print on stderr why the job ended as it did. Nothing if all went well. */
void hemt_report_end(const hemt_job *job);

#endif
