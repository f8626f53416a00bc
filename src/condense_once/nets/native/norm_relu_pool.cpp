// Instance norm, ReLU and 2x2 average pooling fused, for float32 images with channels last.
//
// Between two convolutions a ConvNet is bound by memory. Here each image is read from memory once and stays in the caches: a block of channels
// at a time, for the mean, the standard deviation and the result.

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace {

constexpr int64_t BLOCK = 64;  // channels at a time

using In = const float* __restrict__;
using Out = float* __restrict__;

// max(slope · x + shift, 0) of four pixels, and their mean
inline void pool(In a, In b, In d, In e, In slope, In shift, Out to, int64_t width) {
    for (int64_t c = 0; c < width; ++c) {
        const float sum = std::max(slope[c] * a[c] + shift[c], 0.0f) + std::max(slope[c] * b[c] + shift[c], 0.0f) +
                          std::max(slope[c] * d[c] + shift[c], 0.0f) + std::max(slope[c] * e[c] + shift[c], 0.0f);
        to[c] = 0.25f * sum;
    }
}

// Add one pixel to the sums over all pixels: of its gradient, and of its gradient times its distance from the mean
inline void accumulate(In x, In grad, In slope, In shift, In mean, Out sum, Out moment, int64_t width) {
    for (int64_t c = 0; c < width; ++c) {
        const float gate = slope[c] * x[c] + shift[c] > 0 ? 0.25f : 0.0f;
        const float value = gate * grad[c];
        sum[c] += value;
        moment[c] += value * (x[c] - mean[c]);
    }
}

// The gradient of one pixel, from the means over all pixels
inline void input_gradient(
    In x, In grad, float share, In slope, In shift, In mean, In mean_grad, In mean_moment, Out to, int64_t width
) {
    for (int64_t c = 0; c < width; ++c) {
        const float gate = slope[c] * x[c] + shift[c] > 0 ? share : 0.0f;
        to[c] = slope[c] * (gate * grad[c] - mean_grad[c] - (x[c] - mean[c]) * mean_moment[c]);
    }
}

// Means over the pixels of one channel that the second derivative needs: of r, the gradient behind the ReLU, of v, the cotangent of the gradient
// of x, and of their products with each other and with y, the normalised x.
struct Means {
    float r[BLOCK] = {}, ry[BLOCK] = {}, v[BLOCK] = {}, vy[BLOCK] = {}, rv[BLOCK] = {};
};

inline void accumulate_means(
    In x, In grad, In v, float share, In slope, In shift, In mean, In inverse, Means& sums, int64_t width
) {
    for (int64_t c = 0; c < width; ++c) {
        const float r = (slope[c] * x[c] + shift[c] > 0 ? share : 0.0f) * grad[c], y = (x[c] - mean[c]) * inverse[c];
        sums.r[c] += r;
        sums.ry[c] += r * y;
        sums.v[c] += v[c];
        sums.vy[c] += v[c] * y;
        sums.rv[c] += r * v[c];
    }
}

// The gradient of one pixel of x, and what it adds to the gradient of its pool. The first derivative is, with s = inverse and w = weight,
// s·w·(r − ⟨r⟩ − y·⟨r·y⟩) for x, ⟨r·y⟩ for the weight and ⟨r⟩ for the bias, both summed; `v_weight` and `v_bias` are the cotangents of the last two.
inline void second_gradient(
    In x, In grad, In v, float share, In slope, In shift, In mean, In inverse, In v_weight, In v_bias, const Means& means, Out to, Out pool,
    int64_t width
) {
    for (int64_t c = 0; c < width; ++c) {
        const float gate = slope[c] * x[c] + shift[c] > 0 ? share : 0.0f, r = gate * grad[c];
        const float s = inverse[c], y = (x[c] - mean[c]) * s, a = v_weight[c], w = slope[c];
        const float q = a * r - w * (v[c] * means.ry[c] + r * means.vy[c]);
        const float q_mean = a * means.r[c] - w * (means.v[c] * means.ry[c] + means.r[c] * means.vy[c]);
        const float qy_mean = a * means.ry[c] - 2 * w * means.ry[c] * means.vy[c];
        const float spread = means.rv[c] - means.r[c] * means.v[c] - means.ry[c] * means.vy[c];
        to[c] = s * (q - q_mean - y * (qy_mean + w * spread));
        pool[c] += gate * (w * (v[c] - means.v[c] - y * means.vy[c]) + a * y + v_bias[c]);
    }
}

struct Shape {
    int64_t n, height, width, channels;
    int64_t pixels() const { return height * width; }
};

// Call `work(image, first channel, channels)` for every image and block of channels.
template <typename Work> void for_each_block(const Shape& shape, int threads, const Work& work) {
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t image = 0; image < shape.n; ++image)
        for (int64_t c = 0; c < shape.channels; c += BLOCK) work(image, c, std::min(BLOCK, shape.channels - c));
}

}  // namespace

// x [n, height, width, channels] to out [n, height / 2, width / 2, channels]; mean and scale (1 / std) [n, channels] are kept.
extern "C" void norm_relu_pool(
    const float* x, const float* weight, const float* bias, float* out, float* mean, float* scale, int64_t n, int64_t height, int64_t width,
    int64_t channels, float epsilon, int threads
) {
    const Shape shape{n, height, width, channels};
    const int64_t down = height / 2, across = width / 2;
    for_each_block(shape, threads, [&](int64_t image, int64_t first, int64_t block) {
        In from = x + image * shape.pixels() * channels + first;
        float sum[BLOCK] = {}, squares[BLOCK] = {}, slope[BLOCK], shift[BLOCK];
        for (int64_t p = 0; p < shape.pixels(); ++p)
            for (int64_t c = 0; c < block; ++c) sum[c] += from[p * channels + c];
        for (int64_t c = 0; c < block; ++c) sum[c] /= shape.pixels();
        for (int64_t p = 0; p < shape.pixels(); ++p)
            for (int64_t c = 0; c < block; ++c) {
                const float distance = from[p * channels + c] - sum[c];
                squares[c] += distance * distance;
            }
        for (int64_t c = 0; c < block; ++c) {
            const float inverse = 1 / std::sqrt(squares[c] / shape.pixels() + epsilon);
            mean[image * channels + first + c] = sum[c];
            scale[image * channels + first + c] = inverse;
            slope[c] = weight[first + c] * inverse;
            shift[c] = bias[first + c] - slope[c] * sum[c];
        }
        for (int64_t i = 0; i < down; ++i)
            for (int64_t j = 0; j < across; ++j) {
                In a = from + (2 * i * width + 2 * j) * channels, b = a + channels, d = a + width * channels, e = d + channels;
                Out to = out + ((image * down + i) * across + j) * channels + first;
                pool(a, b, d, e, slope, shift, to, block);
            }
    });
}

// From the gradient of `out` to those of x, and of weight and bias per image [n, channels].
extern "C" void norm_relu_pool_backward(
    const float* grad, const float* x, const float* weight, const float* bias, const float* mean, const float* scale, float* grad_x,
    float* grad_weight, float* grad_bias, int64_t n, int64_t height, int64_t width, int64_t channels, int threads
) {
    const Shape shape{n, height, width, channels};
    const int64_t down = height / 2, across = width / 2;
    for_each_block(shape, threads, [&](int64_t image, int64_t first, int64_t block) {
        const int64_t place = image * channels + first;
        In from = x + image * shape.pixels() * channels + first;
        In grads = grad + image * down * across * channels + first;
        float slope[BLOCK], shift[BLOCK], grad_sum[BLOCK] = {}, moment_sum[BLOCK] = {}, centre[BLOCK], inverse[BLOCK];
        for (int64_t c = 0; c < block; ++c) {
            centre[c] = mean[place + c];
            inverse[c] = scale[place + c];
            slope[c] = weight[first + c] * inverse[c];
            shift[c] = bias[first + c] - slope[c] * centre[c];
        }
        for (int64_t i = 0; i < 2 * down; ++i)
            for (int64_t j = 0; j < 2 * across; ++j) {
                In at = from + (i * width + j) * channels, g = grads + (i / 2 * across + j / 2) * channels;
                accumulate(at, g, slope, shift, centre, grad_sum, moment_sum, block);
            }
        for (int64_t c = 0; c < block; ++c) {
            grad_bias[place + c] = grad_sum[c];
            grad_weight[place + c] = moment_sum[c] * inverse[c];
            grad_sum[c] /= shape.pixels();
            moment_sum[c] *= inverse[c] * inverse[c] / shape.pixels();
        }
        for (int64_t i = 0; i < height; ++i)
            for (int64_t j = 0; j < width; ++j) {
                const int64_t pixel = (i * width + j) * channels;
                In at = from + pixel;
                Out to = grad_x + image * shape.pixels() * channels + first + pixel;
                const bool pooled = i < 2 * down && j < 2 * across;  // an odd last row or column is not pooled
                In g = grads + (pooled ? (i / 2 * across + j / 2) * channels : 0);
                input_gradient(at, g, pooled ? 0.25f : 0.0f, slope, shift, centre, grad_sum, moment_sum, to, block);
            }
    });
}

// The derivative of the backward pass: from the cotangents of its three results, v [n, height, width, channels], v_weight and v_bias [channels],
// to the gradients of `grad`, of x, and of the weight per image; the bias has none.
extern "C" void norm_relu_pool_double_backward(
    const float* v, const float* v_weight, const float* v_bias, const float* grad, const float* x, const float* weight, const float* bias,
    const float* mean, const float* scale, float* grad_grad, float* grad_x, float* grad_weight, int64_t n, int64_t height, int64_t width,
    int64_t channels, int threads
) {
    const Shape shape{n, height, width, channels};
    const int64_t down = height / 2, across = width / 2;
    for_each_block(shape, threads, [&](int64_t image, int64_t first, int64_t block) {
        const int64_t place = image * channels + first, start = image * shape.pixels() * channels + first;
        const int64_t pools = image * down * across * channels + first;
        In centre = mean + place, inverse = scale + place;
        float slope[BLOCK], shift[BLOCK], zeros[BLOCK] = {};
        Means means;
        for (int64_t c = 0; c < block; ++c) {
            slope[c] = weight[first + c] * inverse[c];
            shift[c] = bias[first + c] - slope[c] * centre[c];
        }
        const auto each_pixel = [&](const auto& work) {
            for (int64_t i = 0; i < height; ++i)
                for (int64_t j = 0; j < width; ++j) {
                    const bool pooled = i < 2 * down && j < 2 * across;  // an odd last row or column is not pooled
                    const int64_t pool = pooled ? pools + (i / 2 * across + j / 2) * channels : -1;
                    work(start + (i * width + j) * channels, pool, pooled ? 0.25f : 0.0f);
                }
        };
        each_pixel([&](int64_t pixel, int64_t pool, float share) {
            In g = pool < 0 ? zeros : grad + pool;
            accumulate_means(x + pixel, g, v + pixel, share, slope, shift, centre, inverse, means, block);
        });
        for (int64_t c = 0; c < block; ++c) {
            for (float* sum : {means.r, means.ry, means.v, means.vy, means.rv}) sum[c] /= shape.pixels();
            const float spread = means.rv[c] - means.r[c] * means.v[c] - means.ry[c] * means.vy[c];
            grad_weight[place + c] = shape.pixels() * inverse[c] * spread;
        }
        for (int64_t k = 0; k < down * across; ++k) std::fill_n(grad_grad + pools + k * channels, block, 0.0f);
        each_pixel([&](int64_t pixel, int64_t pool, float share) {
            In g = pool < 0 ? zeros : grad + pool;
            float unused[BLOCK] = {};
            second_gradient(
                x + pixel, g, v + pixel, share, slope, shift, centre, inverse, v_weight + first, v_bias + first, means, grad_x + pixel,
                pool < 0 ? unused : grad_grad + pool, block
            );
        });
    });
}
