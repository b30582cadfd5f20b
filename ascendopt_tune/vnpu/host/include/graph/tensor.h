// Parts of the graph tensor interface that operator sources name.
#pragma once
#include "graph/types.h"
