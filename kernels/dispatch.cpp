// SPDX-License-Identifier: Apache-2.0
// Detection of the CPU and the operating system, and the tables: scalar, overlaid by avx2, overlaid
// by avx512, overlaid by amx.

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "kernels/base/check.h"
#include "kernels/kernels.h"
#include "kernels/registration.h"

namespace belvedere::kernels {
namespace {

/// What matters to us of CPUID and XCR0. A vector flag is set only where the operating system saves
/// the registers too.
struct Features {
    bool avx2 = false;
    bool fma = false;
    bool f16c = false;
    bool avx512_base = false;  ///< F, BW, VL and DQ
    bool avx512_vnni = false;
    bool avx512_bf16 = false;
    bool has_fast_bf16 = false;
    bool amx_int8 = false;
    bool amx_bf16 = false;
};

#if defined(__x86_64__)

struct Registers {
    uint32_t a = 0;
    uint32_t b = 0;
    uint32_t c = 0;
    uint32_t d = 0;
};

/// Zeros where the CPU has no such leaf.
Registers cpuid(uint32_t leaf, uint32_t subleaf) {
    Registers r;
    __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
    return r;
}

bool bit(uint32_t word, unsigned index) {
    return (word >> index & 1U) != 0;
}

/// Register states the operating system saves; 0 where it uses no XSAVE.
uint64_t enabledStates(const Registers& leaf1) {
    if (!bit(leaf1.c, 27)) {
        return 0;
    }
    uint32_t low = 0;
    uint32_t high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return static_cast<uint64_t>(high) << 32 | low;
}

/// Tiles are large: Linux gives a process their state only when it asks. Every thread has it then.
/// Source: Linux, Documentation/arch/x86/xstate.rst.
bool mayUseTiles() {
#if defined(__linux__)
    constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
    constexpr long kTileData = 18;               // the component's number in XCR0
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
    return false;
#endif
}

bool isAmd() {
    const Registers leaf0 = cpuid(0, 0);
    return leaf0.b == 0x68747541 && leaf0.d == 0x69746e65 && leaf0.c == 0x444d4163;  // AuthenticAMD
}

// Bit positions: Intel SDM volume 2, CPUID; volume 1, 13.3 for XCR0.
Features detectFeatures() {
    const Registers leaf1 = cpuid(1, 0);
    const Registers leaf7 = cpuid(7, 0);
    const Registers leaf7_1 = cpuid(7, 1);
    const uint64_t states = enabledStates(leaf1);
    const bool ymm = (states & 0x6U) == 0x6U;
    const bool zmm = (states & 0xe6U) == 0xe6U;
    const bool tiles = (states & 0x60000U) == 0x60000U && bit(leaf7.d, 24);
    Features f;
    f.avx2 = ymm && bit(leaf7.b, 5);
    f.fma = ymm && bit(leaf1.c, 12);
    f.f16c = ymm && bit(leaf1.c, 29);
    f.avx512_base =
        zmm && bit(leaf7.b, 16) && bit(leaf7.b, 17) && bit(leaf7.b, 30) && bit(leaf7.b, 31);
    f.avx512_vnni = zmm && bit(leaf7.c, 11);
    f.avx512_bf16 = zmm && bit(leaf7_1.a, 5);
    // Attention of prompts reaches 155 GFLOP/s a core with vdpbf16ps and 71 in f32 on Zen 4, 64 and
    // 77 on Sapphire Rapids.
    f.has_fast_bf16 = f.avx512_bf16 && isAmd();
    f.amx_int8 = tiles && bit(leaf7.d, 25);
    f.amx_bf16 = tiles && bit(leaf7.d, 22);
    return f;
}

std::string cpuBrand() {
    char text[49] = {};
    for (uint32_t i = 0; i < 3; ++i) {
        const Registers r = cpuid(0x80000002U + i, 0);
        std::memcpy(text + 16 * static_cast<size_t>(i), &r, 16);
    }
    std::string brand(text);
    const size_t first = brand.find_first_not_of(' ');
    const size_t last = brand.find_last_not_of(' ');
    return first == std::string::npos ? "unknown CPU" : brand.substr(first, last - first + 1);
}

#else

Features detectFeatures() {
    return {};
}

std::string cpuBrand() {
    return "unknown CPU";
}

#endif

const Features& features() {
    static const Features kFeatures = detectFeatures();
    return kFeatures;
}

bool canRun(Isa isa) {
#if defined(__x86_64__)
    const Features& f = features();
    const bool avx2 = f.avx2 && f.fma && f.f16c;
    switch (isa) {
        case Isa::Scalar:
            return true;
        case Isa::Avx2:
            return avx2;
        case Isa::Avx512:
            return avx2 && f.avx512_base && f.avx512_vnni;
        case Isa::Amx:
            return avx2 && f.avx512_base && f.avx512_vnni && f.avx512_bf16 && f.amx_bf16 &&
                   mayUseTiles();
    }
    return false;
#else
    return isa == Isa::Scalar;
#endif
}

KernelTable makeTable(Isa isa, CpuExtras extras) {
    KernelTable table{};
    registerScalar(table);
#if defined(__x86_64__)
    if (isa >= Isa::Avx2) {
        registerAvx2(table);
    }
    if (isa >= Isa::Avx512) {
        registerAvx512(table, extras);
    }
    if (isa >= Isa::Amx) {
        registerAmx(table);
    }
#endif
    return table;
}

/// For prompts.
KernelTable makeTable(Isa isa) {
    return makeTable(
        isa, {.avx512_bf16 = features().avx512_bf16, .has_fast_bf16 = features().has_fast_bf16});
}

Isa bestIsa() {
    for (const Isa isa : {Isa::Amx, Isa::Avx512, Isa::Avx2}) {
        if (canRun(isa)) {
            return isa;
        }
    }
    return Isa::Scalar;
}

size_t usableCores() {
#if defined(__linux__)
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
        return static_cast<size_t>(CPU_COUNT(&cores));
    }
#endif
    return std::max<size_t>(1, std::thread::hardware_concurrency());
}

}  // namespace

const char* isaName(Isa isa) {
    switch (isa) {
        case Isa::Scalar:
            return "scalar";
        case Isa::Avx2:
            return "avx2";
        case Isa::Avx512:
            return "avx512";
        case Isa::Amx:
            return "amx";
    }
    return "unknown";
}

const KernelTable* tableFor(Isa isa) {
    if (!canRun(isa)) {
        return nullptr;
    }
    static const KernelTable kScalar = makeTable(Isa::Scalar);
    static const KernelTable kAvx2 = canRun(Isa::Avx2) ? makeTable(Isa::Avx2) : kScalar;
    static const KernelTable kAvx512 = canRun(Isa::Avx512) ? makeTable(Isa::Avx512) : kAvx2;
    static const KernelTable kAmx = canRun(Isa::Amx) ? makeTable(Isa::Amx) : kAvx512;
    switch (isa) {
        case Isa::Scalar:
            return &kScalar;
        case Isa::Avx2:
            return &kAvx2;
        case Isa::Avx512:
            return &kAvx512;
        case Isa::Amx:
            return &kAmx;
    }
    return nullptr;
}

const KernelTable& generationTable(const KernelTable& table) {
#if defined(__x86_64__)
    if (table.isa >= Isa::Avx512 && features().avx512_bf16) {
        static const KernelTable kAvx512Generation = [] {
            KernelTable generation = makeTable(Isa::Avx512, {.avx512_bf16 = true});
            registerAvx512Generation(generation);
            return generation;
        }();
        return kAvx512Generation;
    }
#endif
    return table;
}

Result<Isa> chosenIsa() {
    const char* named = std::getenv("BV_ISA");
    if (named == nullptr || *named == '\0') {
        return bestIsa();
    }
    for (const Isa isa : {Isa::Scalar, Isa::Avx2, Isa::Avx512, Isa::Amx}) {
        if (std::string_view(named) != isaName(isa)) {
            continue;
        }
        if (!canRun(isa)) {
            return fail(ErrorCode::Unsupported,
                        "BV_ISA={}: this machine cannot run it; the best it has is {}", named,
                        isaName(bestIsa()));
        }
        return isa;
    }
    return fail(ErrorCode::InvalidArgument,
                "BV_ISA={}: not an instruction set; use scalar, avx2, avx512 or amx", named);
}

const KernelTable& active() {
    static const KernelTable& kActive = [&]() -> const KernelTable& {
        const Result<Isa> isa = chosenIsa();
        BV_CHECK(isa.has_value());  // main has called chosenIsa and shown its error
        return *tableFor(*isa);
    }();
    return kActive;
}

CpuInfo cpuInfo() {
    const Features& f = features();
    const std::pair<bool, const char*> flags[] = {
        {f.avx2, "avx2"},
        {f.fma, "fma"},
        {f.f16c, "f16c"},
        {f.avx512_base, "avx512"},
        {f.avx512_vnni, "avx512vnni"},
        {f.avx512_bf16, "avx512bf16"},
        {f.amx_int8, "amx-int8"},
        {f.amx_bf16, "amx-bf16"},
    };
    CpuInfo info;
    info.brand = cpuBrand();
    info.n_cores = usableCores();
    for (const auto& [has, name] : flags) {
        if (has) {
            info.features += info.features.empty() ? "" : " ";
            info.features += name;
        }
    }
    return info;
}

}  // namespace belvedere::kernels
