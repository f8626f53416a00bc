// The transforms of Winograd's F(4x4, 3x3) between images and tiles, for float32 images with channels last.
//
// A tile has 36 values per channel, stored as 36 planes of [tiles, channels]. Each transform is two passes over a tile, along its columns and
// along its rows, on a block of channels at a time, which the compiler vectorises. Points 0, ±1, ±2, ∞.

#include <algorithm>
#include <cstdint>

namespace {

constexpr int64_t BLOCK = 64;  // channels at a time: their 36 values stay in the L1 cache
alignas(64) const float ZEROS[BLOCK] = {};

using In = const float* __restrict__;
using Out = float* __restrict__;

// Bᵀd: six values of an input tile to six
inline void transform_input(In d0, In d1, In d2, In d3, In d4, In d5, float* const m[6], int64_t width) {
    Out m0 = m[0]; Out m1 = m[1]; Out m2 = m[2]; Out m3 = m[3]; Out m4 = m[4]; Out m5 = m[5];
    for (int64_t c = 0; c < width; ++c) {
        const float even = d4[c] - 4 * d2[c], odd = d3[c] - 4 * d1[c];
        const float even2 = d4[c] - d2[c], odd2 = 2 * (d3[c] - d1[c]);
        m0[c] = 4 * d0[c] - 5 * d2[c] + d4[c];
        m1[c] = even + odd;
        m2[c] = even - odd;
        m3[c] = even2 + odd2;
        m4[c] = even2 - odd2;
        m5[c] = 4 * d1[c] - 5 * d3[c] + d5[c];
    }
}

// Aᵀm: six products to four values of an output tile
inline void transform_output(In m0, In m1, In m2, In m3, In m4, In m5, float* const y[4], int64_t width) {
    Out y0 = y[0]; Out y1 = y[1]; Out y2 = y[2]; Out y3 = y[3];
    for (int64_t c = 0; c < width; ++c) {
        const float sum = m1[c] + m2[c], gap = m1[c] - m2[c], sum2 = m3[c] + m4[c], gap2 = m3[c] - m4[c];
        y0[c] = m0[c] + sum + sum2;
        y1[c] = gap + 2 * gap2;
        y2[c] = sum + 4 * sum2;
        y3[c] = gap + 8 * gap2 + m5[c];
    }
}

// Ay: four gradients of an output tile to six
inline void transform_gradient(In y0, In y1, In y2, In y3, float* const m[6], int64_t width) {
    Out m0 = m[0]; Out m1 = m[1]; Out m2 = m[2]; Out m3 = m[3]; Out m4 = m[4]; Out m5 = m[5];
    for (int64_t c = 0; c < width; ++c) {
        const float even = y0[c] + y2[c], odd = y1[c] + y3[c];
        const float even2 = y0[c] + 4 * y2[c], odd2 = 2 * y1[c] + 8 * y3[c];
        m0[c] = y0[c];
        m1[c] = even + odd;
        m2[c] = even - odd;
        m3[c] = even2 + odd2;
        m4[c] = even2 - odd2;
        m5[c] = y3[c];
    }
}

struct Grid {
    int64_t n, height, width, channels;
    int64_t down() const { return (height + 3) / 4; }
    int64_t across() const { return (width + 3) / 4; }
    int64_t tiles() const { return n * down() * across(); }
    // The address of a pixel, or null outside the image
    template <typename T> T* at(T* images, int64_t image, int64_t y, int64_t x) const {
        const bool inside = 0 <= y && y < height && 0 <= x && x < width;
        return inside ? images + ((image * height + y) * width + x) * channels : nullptr;
    }
};

// Call `work(tile, image, top, left, first channel, channels)` for every tile and block of channels.
template <typename Work> void for_each_tile(const Grid& grid, int threads, const Work& work) {
    const int64_t across = grid.across(), each = grid.down() * across, tiles = grid.tiles();
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t image = tile / each, place = tile % each;
        for (int64_t c = 0; c < grid.channels; c += BLOCK)
            work(tile, image, 4 * (place / across), 4 * (place % across), c, std::min(BLOCK, grid.channels - c));
    }
}

}  // namespace

// Overlapping 6×6 tiles of images [n, height, width, channels], zero-padded, transformed.
extern "C" void input_tiles(const float* images, float* tiles, int64_t n, int64_t height, int64_t width, int64_t channels, int64_t plane, int threads) {
    const Grid grid{n, height, width, channels};
    for_each_tile(grid, threads, [&](int64_t tile, int64_t image, int64_t top, int64_t left, int64_t c, int64_t block) {
        float half[6][6][BLOCK];
        for (int j = 0; j < 6; ++j) {
            const float* d[6];
            for (int i = 0; i < 6; ++i) {
                const float* pixel = grid.at(images, image, top + i - 1, left + j - 1);
                d[i] = pixel ? pixel + c : ZEROS;
            }
            float* const to[6] = {half[0][j], half[1][j], half[2][j], half[3][j], half[4][j], half[5][j]};
            transform_input(d[0], d[1], d[2], d[3], d[4], d[5], to, block);
        }
        float* out = tiles + tile * channels + c;
        for (int i = 0; i < 6; ++i, out += 6 * plane) {
            float* const to[6] = {out, out + plane, out + 2 * plane, out + 3 * plane, out + 4 * plane, out + 5 * plane};
            transform_input(half[i][0], half[i][1], half[i][2], half[i][3], half[i][4], half[i][5], to, block);
        }
    });
}

// Products [36, tiles, channels] transformed back to images [n, height, width, channels].
extern "C" void output_images(const float* tiles, float* images, int64_t n, int64_t height, int64_t width, int64_t channels, int64_t plane, int threads) {
    const Grid grid{n, height, width, channels};
    for_each_tile(grid, threads, [&](int64_t tile, int64_t image, int64_t top, int64_t left, int64_t c, int64_t block) {
        float half[4][6][BLOCK], outside[4][BLOCK];
        const float* in = tiles + tile * channels + c;
        for (int j = 0; j < 6; ++j, in += plane) {
            float* const to[4] = {half[0][j], half[1][j], half[2][j], half[3][j]};
            transform_output(in, in + 6 * plane, in + 12 * plane, in + 18 * plane, in + 24 * plane, in + 30 * plane, to, block);
        }
        for (int i = 0; i < 4; ++i) {
            float* to[4];
            for (int j = 0; j < 4; ++j) {
                float* pixel = grid.at(images, image, top + i, left + j);
                to[j] = pixel ? pixel + c : outside[j];
            }
            transform_output(half[i][0], half[i][1], half[i][2], half[i][3], half[i][4], half[i][5], to, block);
        }
    });
}

// Gradients of output images [n, height, width, channels] to gradients of the products.
extern "C" void output_tiles(const float* images, float* tiles, int64_t n, int64_t height, int64_t width, int64_t channels, int64_t plane, int threads) {
    const Grid grid{n, height, width, channels};
    for_each_tile(grid, threads, [&](int64_t tile, int64_t image, int64_t top, int64_t left, int64_t c, int64_t block) {
        float half[6][4][BLOCK];
        for (int j = 0; j < 4; ++j) {
            const float* y[4];
            for (int i = 0; i < 4; ++i) {
                const float* pixel = grid.at(images, image, top + i, left + j);
                y[i] = pixel ? pixel + c : ZEROS;
            }
            float* const to[6] = {half[0][j], half[1][j], half[2][j], half[3][j], half[4][j], half[5][j]};
            transform_gradient(y[0], y[1], y[2], y[3], to, block);
        }
        float* out = tiles + tile * channels + c;
        for (int i = 0; i < 6; ++i, out += 6 * plane) {
            float* const to[6] = {out, out + plane, out + 2 * plane, out + 3 * plane, out + 4 * plane, out + 5 * plane};
            transform_gradient(half[i][0], half[i][1], half[i][2], half[i][3], to, block);
        }
    });
}
