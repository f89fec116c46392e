/* Dot-product attention over edges, forward and backward, without a row of memory per edge and channel.

   A node i has a row of 4 H C numbers: query, key, value and root, each of H heads with C channels. An edge e
   goes from source[e] to target[e] and may have D features, with weights w of D x H x C. With s = 1/sqrt(C),

       logit[e,h] = s q[t,h] . (k[s,h] + w[:,h] attr[e])
       message[t,h] = sum_e alpha[e,h] (v[s,h] + w[:,h] attr[e]),

   where alpha is the softmax of the logits over the edges of a target. Both are linear in the features, so w
   meets nodes and not edges: q[t] w gives D numbers per head, and sums of alpha attr meet w afterwards.
   Edges may be in any order; sums follow it, so that results do not depend on what else is in the arrays. */

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Largest number of heads, H. */
#define MOST_HEADS 64

#define INLINE static inline __attribute__((always_inline))

/* exp for x <= 0 to about one unit in the last place, without branches so that loops over it vectorise. */
INLINE float exponential(float x) {
    x = x < -87.0f ? -87.0f : x;
    float n = floorf(x * 1.44269504088896341f + 0.5f);
    float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    union { int32_t i; float f; } power = { ((int32_t)n + 127) << 23 };
    return p * power.f;
}

typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));
typedef float Eight __attribute__((vector_size(32), aligned(4), may_alias));

INLINE float sum_of(Eight x) {
    union { Eight all; Four half[2]; } parts = { x };
    Four s = parts.half[0] + parts.half[1];
    return (s[0] + s[2]) + (s[1] + s[3]);
}

INLINE float dot(const float *a, const float *b, int64_t C) {
    if (C % 8 == 0) {
        Eight sum = { 0 };
        for (int64_t c = 0; c < C; c += 8) sum += *(const Eight *)(a + c) * *(const Eight *)(b + c);
        return sum_of(sum);
    }
    float sum = 0.0f;
    for (int64_t c = 0; c < C; c++) sum += a[c] * b[c];
    return sum;
}

INLINE void add(float *to, float weight, const float *row, int64_t C) {
    if (C % 8 == 0)
        for (int64_t c = 0; c < C; c += 8) *(Eight *)(to + c) += weight * *(const Eight *)(row + c);
    else
        for (int64_t c = 0; c < C; c++) to[c] += weight * row[c];
}

/* Terms and sums of a node are D x H numbers: heads are next to each other, or features if they fill vectors. */
INLINE int is_wide(int64_t D) { return D % 8 == 0; }

/* to[h,c,d] = w[d,h,c] */
INLINE void transposed(float *to, const float *w, int64_t H, int64_t C, int64_t D) {
    for (int64_t d = 0; d < D; d++)
        for (int64_t i = 0; i < H * C; i++) to[i * D + d] = w[d * H * C + i];
}

/* Terms scale * rows[i,h] . w[d,h] of all nodes; a row begins every `stride` numbers, and wt is w transposed. */
INLINE void times_weights(float *out, const float *rows, int64_t stride, const float *w, const float *wt,
                          float scale, int64_t M, int64_t H, int64_t C, int64_t D) {
    if (is_wide(D)) {
        for (int64_t i = 0; i < M; i++)
            for (int64_t h = 0; h < H; h++)
                for (int64_t d = 0; d < D; d += 8) {
                    Eight sum = { 0 };
                    for (int64_t c = 0; c < C; c++)
                        sum += rows[i * stride + h * C + c] * *(const Eight *)(wt + (h * C + c) * D + d);
                    *(Eight *)(out + (i * H + h) * D + d) = scale * sum;
                }
        return;
    }
    for (int64_t i = 0; i < M; i++)
        for (int64_t d = 0; d < D; d++)
            for (int64_t h = 0; h < H; h++)
                out[(i * D + d) * H + h] = scale * dot(rows + i * stride + h * C, w + (d * H + h) * C, C);
}

/* to[h] += scale * sum_d sums[d,h] w[d,h] for one node, rows of C numbers. */
INLINE void add_weights(float *to, const float *sums, float scale, const float *w, int64_t H, int64_t C,
                        int64_t D) {
    const int64_t of_head = is_wide(D) ? D : 1, of_feature = is_wide(D) ? 1 : H;
    for (int64_t h = 0; h < H; h++)
        if (C % 8 == 0)
            for (int64_t c = 0; c < C; c += 8) {
                Eight sum = { 0 };
                for (int64_t d = 0; d < D; d++)
                    sum += sums[h * of_head + d * of_feature] * *(const Eight *)(w + (d * H + h) * C + c);
                *(Eight *)(to + h * C + c) += scale * sum;
            }
        else
            for (int64_t d = 0; d < D; d++)
                add(to + h * C, scale * sums[h * of_head + d * of_feature], w + (d * H + h) * C, C);
}

/* Gradient of the weights: d_w[d,h] += scale * sums[d,h] row[h] for one node; transposed if wide. */
INLINE void add_outer(float *d_w, const float *sums, float scale, const float *row, int64_t H, int64_t C,
                      int64_t D) {
    if (is_wide(D))
        for (int64_t h = 0; h < H; h++)
            for (int64_t c = h * C; c < (h + 1) * C; c++) add(d_w + c * D, scale * row[c], sums + h * D, D);
    else
        for (int64_t d = 0; d < D; d++)
            for (int64_t h = 0; h < H; h++) add(d_w + (d * H + h) * C, scale * sums[d * H + h], row + h * C, C);
}

/* to[d,h] += weight[h] * attr[d] */
INLINE void add_features(float *to, const float *weight, const float *attr, int64_t H, int64_t D) {
    if (is_wide(D))
        for (int64_t h = 0; h < H; h++) add(to + h * D, weight[h], attr, D);
    else
        for (int64_t d = 0; d < D; d++) {
            const float feature = attr[d];
            for (int64_t h = 0; h < H; h++) to[d * H + h] += weight[h] * feature;
        }
}

/* to[h] += sum_d terms[d,h] * attr[d] */
INLINE void add_terms(float *to, const float *terms, const float *attr, int64_t H, int64_t D) {
    if (D == 0) return;
    if (is_wide(D))
        for (int64_t h = 0; h < H; h++) to[h] += dot(terms + h * D, attr, D);
    else
        for (int64_t d = 0; d < D; d++) {
            const float feature = attr[d];
            for (int64_t h = 0; h < H; h++) to[h] += terms[d * H + h] * feature;
        }
}

/* to[d] = sum_h one[h] terms[d,h] + other[h] values[d,h] */
INLINE void features_of(float *to, const float *one, const float *terms, const float *other,
                        const float *values, int64_t H, int64_t D) {
    if (is_wide(D)) {
        memset(to, 0, sizeof(float) * D);
        for (int64_t h = 0; h < H; h++) {
            add(to, one[h], terms + h * D, D);
            add(to, other[h], values + h * D, D);
        }
        return;
    }
    for (int64_t d = 0; d < D; d++) {
        float sum = 0.0f;
        for (int64_t h = 0; h < H; h++) sum += one[h] * terms[d * H + h] + other[h] * values[d * H + h];
        to[d] = sum;
    }
}

INLINE void forward_of(int64_t M, int64_t L, int64_t H, int64_t C, int64_t D, const float *rows,
                       const int64_t *source, const int64_t *target, const float *attr, const float *w,
                       float *message, float *out, float *logits, float *alpha, float *work) {
    const int64_t W = H * C;
    const float scale = 1.0f / sqrtf((float)C);
    float *highest = work, *total = highest + M * H, *terms = total + M * H, *sums = terms + M * H * D,
          *wt = sums + M * H * D;
    for (int64_t i = 0; i < M * H; i++) highest[i] = -3.402823466e38f;
    memset(total, 0, sizeof(float) * M * H);
    memset(sums, 0, sizeof(float) * M * H * D);
    memset(message, 0, sizeof(float) * M * W);
    transposed(wt, w, H, C, D);
    times_weights(terms, rows, 4 * W, w, wt, scale, M, H, C, D);
    for (int64_t e = 0; e < L; e++) {
        const int64_t t = target[e];
        const float *q = rows + t * 4 * W, *k = rows + source[e] * 4 * W + W;
        float z[MOST_HEADS];
        for (int64_t h = 0; h < H; h++) z[h] = scale * dot(q + h * C, k + h * C, C);
        add_terms(z, terms + t * D * H, attr + e * D, H, D);
        for (int64_t h = 0; h < H; h++) {
            logits[e * H + h] = z[h];
            highest[t * H + h] = z[h] > highest[t * H + h] ? z[h] : highest[t * H + h];
        }
    }
    for (int64_t e = 0; e < L; e++)
        for (int64_t h = 0; h < H; h++) alpha[e * H + h] = logits[e * H + h] - highest[target[e] * H + h];
    for (int64_t i = 0; i < L * H; i++) alpha[i] = exponential(alpha[i]);
    for (int64_t e = 0; e < L; e++)
        for (int64_t h = 0; h < H; h++) total[target[e] * H + h] += alpha[e * H + h];
    for (int64_t i = 0; i < M * H; i++) total[i] = 1.0f / total[i];
    for (int64_t e = 0; e < L; e++) {
        const int64_t t = target[e];
        const float *v = rows + source[e] * 4 * W + 2 * W;
        float a[MOST_HEADS];
        for (int64_t h = 0; h < H; h++) alpha[e * H + h] = a[h] = alpha[e * H + h] * total[t * H + h];
        for (int64_t h = 0; h < H; h++) add(message + t * W + h * C, a[h], v + h * C, C);
        add_features(sums + t * D * H, a, attr + e * D, H, D);
    }
    for (int64_t i = 0; i < M; i++) {
        add_weights(message + i * W, sums + i * D * H, 1.0f, w, H, C, D);
        const float *root = rows + i * 4 * W + 3 * W;
        for (int64_t c = 0; c < W; c++) out[i * W + c] = message[i * W + c] + root[c];
    }
}

/* Gradients of what forward_of reads; d_attr may be null. d_rows, d_attr and d_w are overwritten. */
INLINE void backward_of(int64_t M, int64_t L, int64_t H, int64_t C, int64_t D, const float *rows,
                        const int64_t *source, const int64_t *target, const float *attr, const float *w,
                        const float *message, const float *alpha, const float *d_out, float *d_rows,
                        float *d_attr, float *d_w, float *work) {
    const int64_t W = H * C;
    const float scale = 1.0f / sqrtf((float)C);
    float *mean = work, *terms = mean + M * H, *values = terms + M * H * D, *logit_sums = values + M * H * D,
          *alpha_sums = logit_sums + M * H * D, *wt = alpha_sums + M * H * D, *d_wt = wt + D * W;
    memset(logit_sums, 0, 2 * sizeof(float) * M * H * D);
    memset(d_w, 0, sizeof(float) * D * W);
    memset(d_wt, 0, sizeof(float) * D * W);
    transposed(wt, w, H, C, D);
    times_weights(terms, rows, 4 * W, w, wt, scale, M, H, C, D);
    times_weights(values, d_out, W, w, wt, 1.0f, M, H, C, D);
    for (int64_t i = 0; i < M; i++) {
        memset(d_rows + i * 4 * W, 0, sizeof(float) * 3 * W);
        memcpy(d_rows + i * 4 * W + 3 * W, d_out + i * W, sizeof(float) * W);
        for (int64_t h = 0; h < H; h++)
            mean[i * H + h] = dot(d_out + i * W + h * C, message + i * W + h * C, C);
    }
    for (int64_t e = 0; e < L; e++) {
        const int64_t t = target[e], s = source[e];
        const float *there = rows + s * 4 * W, *q = rows + t * 4 * W, *gradient = d_out + t * W;
        float *d_there = d_rows + s * 4 * W, *d_q = d_rows + t * 4 * W;
        float a[MOST_HEADS], d_logit[MOST_HEADS];
        for (int64_t h = 0; h < H; h++) d_logit[h] = dot(gradient + h * C, there + 2 * W + h * C, C);
        add_terms(d_logit, values + t * D * H, attr + e * D, H, D);
        for (int64_t h = 0; h < H; h++) {
            a[h] = alpha[e * H + h];
            d_logit[h] = a[h] * (d_logit[h] - mean[t * H + h]);
        }
        add_features(logit_sums + t * D * H, d_logit, attr + e * D, H, D);
        add_features(alpha_sums + t * D * H, a, attr + e * D, H, D);
        if (d_attr) features_of(d_attr + e * D, d_logit, terms + t * D * H, a, values + t * D * H, H, D);
        for (int64_t h = 0; h < H; h++) {
            add(d_q + h * C, scale * d_logit[h], there + W + h * C, C);
            add(d_there + W + h * C, scale * d_logit[h], q + h * C, C);
            add(d_there + 2 * W + h * C, a[h], gradient + h * C, C);
        }
    }
    float *sums_of_w = is_wide(D) ? d_wt : d_w;
    for (int64_t i = 0; i < M && D; i++) {
        add_weights(d_rows + i * 4 * W, logit_sums + i * D * H, scale, w, H, C, D);
        add_outer(sums_of_w, logit_sums + i * D * H, scale, rows + i * 4 * W, H, C, D);
        add_outer(sums_of_w, alpha_sums + i * D * H, 1.0f, d_out + i * W, H, C, D);
    }
    if (is_wide(D))
        for (int64_t d = 0; d < D; d++)
            for (int64_t i = 0; i < W; i++) d_w[d * W + i] = d_wt[i * D + d];
}

/* The compiler unrolls the loops over usual numbers of heads and channels, which it knows here. */
#define WITH_SIZES(call)                                                                                    \
    switch (H * 1000 + C) {                                                                                 \
        case 4008: call(4, 8); break;                                                                       \
        case 4016: call(4, 16); break;                                                                      \
        case 4032: call(4, 32); break;                                                                      \
        default: call(H, C);                                                                                \
    }

/* Returns 0, or 1 if an edge refers to a node that does not exist. */
int attention_forward(int64_t M, int64_t L, int64_t H, int64_t C, int64_t D, const float *restrict rows,
                      const int64_t *restrict source, const int64_t *restrict target,
                      const float *restrict attr, const float *restrict w, float *restrict message,
                      float *restrict out, float *restrict logits, float *restrict alpha,
                      float *restrict work) {
    for (int64_t e = 0; e < L; e++)
        if ((uint64_t)source[e] >= (uint64_t)M || (uint64_t)target[e] >= (uint64_t)M) return 1;
#define CALL(h, c) forward_of(M, L, h, c, D, rows, source, target, attr, w, message, out, logits, alpha, work)
    WITH_SIZES(CALL)
#undef CALL
    return 0;
}

void attention_backward(int64_t M, int64_t L, int64_t H, int64_t C, int64_t D, const float *restrict rows,
                        const int64_t *restrict source, const int64_t *restrict target,
                        const float *restrict attr, const float *restrict w, const float *restrict message,
                        const float *restrict alpha, const float *restrict d_out, float *restrict d_rows,
                        float *restrict d_attr, float *restrict d_w, float *restrict work) {
#define CALL(h, c)                                                                                       \
    backward_of(M, L, h, c, D, rows, source, target, attr, w, message, alpha, d_out, d_rows, d_attr, d_w, work)
    WITH_SIZES(CALL)
#undef CALL
}
