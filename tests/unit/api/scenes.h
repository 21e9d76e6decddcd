/* The scenes of the api tests: "default" (3 months, recent.max 100) and "push" (1 day, recent.max 5), "likes"
 * (2 months, counting). */
#ifndef DD_TESTS_API_SCENES_H
#define DD_TESTS_API_SCENES_H

#include "dedup/scene.h"

struct dd_scenes *test_scenes(void);

#endif
