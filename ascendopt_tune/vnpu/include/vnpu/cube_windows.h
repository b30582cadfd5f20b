// Loads to L0A and L0B of what a convolution's window sees: L1 holds an image, column of channels by column of
// channels; a matrix of one row for each place of the window is imagined, and a part of it is loaded.
#pragma once
#include <cstdint>

#include "types.h"

namespace vnpu {

// The image and its margins, as a register holds them.
struct WindowImage {
  uint32_t height = 0, width = 0;
  uint32_t left = 0, right = 0, top = 0, bottom = 0;  // rows and columns of padding
};

// `rows` rows from row `first_row` on, `columns` elements from element `first_column` on.
struct WindowLoad {
  uint32_t channels = 0;
  uint32_t first_row = 0, rows = 0, first_column = 0, columns = 0;
  uint32_t step_y = 1, step_x = 1;          // of the window
  uint32_t window_h = 1, window_w = 1;      // its points
  uint32_t dilation_y = 1, dilation_x = 1;  // from point to point
  bool transpose = false;                   // to L0A; what goes to L0B is transposed anyway
  bool right_image = false;                 // the image of the right matrix's register
};
// Does nothing where a size is 0. The image, the padding, repeats and the boundary come from the registers below.
void load_windows(Memory to, void* dst, const void* src, const WindowLoad& load, DType dtype, const char* api);

// ---- registers ----
// There are two images: the left matrix's, which both may use, and the right matrix's.
void set_window_image(const WindowImage& image, bool right = false);
// Bits of the padding's value, as elements of 2 or 4 bytes have them; elements of 1 byte take the lowest.
void set_window_padding(uint32_t bits);
// Loads end at `bytes` of L1 and go on at its begin; 0 is off.
void set_window_boundary(uint32_t bytes);
// A load is repeated `times`, each `stride` units further: 16 rows, or with `along_columns` a block of columns.
void set_window_repeat(uint32_t stride, uint32_t times, bool along_columns);
struct WindowRegisters {
  WindowImage image, right_image;
  bool has_image = false, has_right_image = false;
  uint32_t padding = 0, boundary = 0;
  uint32_t repeat_stride = 0, repeat_times = 1;
  bool repeat_columns = false;
};

}  // namespace vnpu
