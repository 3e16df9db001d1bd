/* The transport of a rank to itself. */
#ifndef HEMI_TRANSPORT_SELF_SELF_H
#define HEMI_TRANSPORT_SELF_SELF_H

#include "transport/transport.h"

extern const hemi_transport hemi_transport_self;

#endif
