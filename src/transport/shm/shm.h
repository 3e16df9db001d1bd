/* The transport between ranks of one machine. */
#ifndef HEMI_TRANSPORT_SHM_SHM_H
#define HEMI_TRANSPORT_SHM_SHM_H

#include "transport/transport.h"

extern const hemi_transport hemi_transport_shm;

#endif
