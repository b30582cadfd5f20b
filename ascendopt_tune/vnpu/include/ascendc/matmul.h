// The high-level matrix multiplication on cube cores: Matmul, REGIST_MATMUL_OBJ (AscendC reference, Matmul).
#pragma once
#include "matmul_types.h"
#include "pipe.h"
#include "vnpu/matmul.h"
#include "vnpu/tscm.h"

namespace AscendC::matmul_api {

namespace matmul_inner {
struct Registration;
}

#define MATMUL_POLICY_DEFAULT_OF(DEFAULT)      \
  template <const auto& = MM_CFG, typename...> \
  class MATMUL_POLICY = AscendC::matmul_api::policies::DEFAULT

// Covered are half, bfloat16_t, float, int8_t, int4b_t; ND, NZ, ND_ALIGN, VECTOR; batches; sparse B; not HF32,
// AntiQuant.
template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE, const auto& MM_CFG = CFG_NORM,
          class MM_CB = MatmulCallBackFunc<nullptr, nullptr, nullptr>, MATMUL_POLICY_DEFAULT_OF(MatmulPolicy)>
class MatmulImpl {
  using SrcAT = typename A_TYPE::T;
  using SrcBT = typename B_TYPE::T;
  using DstT = typename C_TYPE::T;
  using BiasT = typename BIAS_TYPE::T;
  static constexpr const MatmulConfig& config = matmul_inner::config_of(MM_CFG);
  static_assert(matmul_inner::covers_format(A_TYPE::format, false) &&
                    matmul_inner::covers_format(B_TYPE::format, false) &&
                    matmul_inner::covers_format(C_TYPE::format, true),
                "AscendC::Matmul: this CubeFormat is not covered by the virtual NPU, or not on architecture 2201");
  static_assert(std::is_same_v<SrcAT, SrcBT> &&
                    (std::is_same_v<SrcAT, half> || std::is_same_v<SrcAT, bfloat16_t> || std::is_same_v<SrcAT, float> ||
                     std::is_same_v<SrcAT, int8_t> || std::is_same_v<SrcAT, int4b_t>),
                "AscendC::Matmul: these types of A and B are not covered by the virtual NPU, or not on architecture "
                "2201");
  static_assert(!vnpu::is_half_byte<SrcAT> || !A_TYPE::isTrans,
                "AscendC::Matmul: A of int4b_t can't be transposed (AscendC reference, SetTensorA)");
  static_assert(!vnpu::is_half_byte<SrcAT> || std::is_same_v<DstT, int32_t> || std::is_same_v<DstT, half>,
                "AscendC::Matmul: of int4b_t come int32_t and half (AscendC reference, Matmul)");
  static_assert(!vnpu::is_half_byte<SrcAT> ||
                    (!matmul_inner::in_unified_buffer(A_TYPE::pos) && !matmul_inner::in_unified_buffer(B_TYPE::pos)),
                "AscendC::Matmul: int4b_t in the Unified Buffer is not covered by the virtual NPU");
  // Without A's, B's LayoutMode says nothing in an MDL configuration (asc-devkit, copy_cube_in_utils.h).
  static constexpr bool batched =
      A_TYPE::layout != LayoutMode::NONE ||
      (B_TYPE::layout != LayoutMode::NONE && !config.doMultiDataLoad && !config.doSpecialMDL);
  static_assert(!batched || matmul_inner::refused_batch<A_TYPE, B_TYPE, C_TYPE>(config) == nullptr,
                "AscendC::Matmul: batches of this LayoutMode, type, position or configuration are not covered by the "
                "virtual NPU, or do not exist (docs/cube.md lists them)");
  static constexpr bool own_way_out = matmul_inner::own_copy_out<MM_CB::data_copy_out>() != nullptr;
  static_assert(!batched ||
                    (std::is_same_v<std::remove_cv_t<decltype(MM_CB::copy_a1)>, std::nullptr_t> &&
                     std::is_same_v<std::remove_cv_t<decltype(MM_CB::copy_b1)>, std::nullptr_t> && !own_way_out),
                "AscendC::MatmulCallBackFunc: own copies for batches are not covered by the virtual NPU");
  static_assert(matmul_inner::covers_sparse<A_TYPE, B_TYPE>(config),
                "AscendC::SparseMatmulType is for B of int8_t in GM with ISTRANS, LayoutMode::NONE, no IBSHARE, and an "
                "MDL configuration (AscendC reference)");
  static_assert(matmul_inner::refused(config) == nullptr,
                "AscendC::Matmul: a field of MatmulConfig is not covered by the virtual NPU (docs/cube.md lists them)");

 public:
  using AType = A_TYPE;
  using BType = B_TYPE;
  using CType = C_TYPE;
  using BiasType = BIAS_TYPE;

  ASCENDC_INLINE MatmulImpl() = default;

  ASCENDC_INLINE void Init(const TCubeTiling* cubeTiling, TPipe* = nullptr) {
    state_.registered = -1;
    describe(matmul_inner::tiling_of(MM_CFG, cubeTiling));
    vnpu::matmul_init(state_, "Matmul::Init");
  }

  // ---- what is multiplied ----
  ASCENDC_INLINE void SetOrgShape(int orgM, int orgN, int orgK) { SetOrgShape(orgM, orgN, orgK, orgK); }
  ASCENDC_INLINE void SetOrgShape(int orgM, int orgN, int orgKa, int orgKb, int orgKc = 0) {
    state_.org_m = orgM;
    state_.org_n = orgN;
    state_.org_ka = orgKa;
    state_.org_kb = orgKb;
    state_.org_kc = orgKc;
    state_.own.whole = true;
    changed(true, true);
  }
  ASCENDC_INLINE void SetSingleShape(int singleM, int singleN, int singleK) { SetTail(singleM, singleN, singleK); }
  ASCENDC_INLINE void SetTail(int tailM = -1, int tailN = -1, int tailK = -1) {
    if (tailM != -1) state_.cut.m = state_.own.m = tailM;
    if (tailN != -1) state_.cut.n = state_.own.n = tailN;
    if (tailK != -1) state_.cut.k = state_.own.k = tailK;
    changed(true, true);
  }
  ASCENDC_INLINE void SetTensorA(const GlobalTensor<SrcAT>& gm, bool isTransposeA = false) {
    static_assert(A_TYPE::pos == TPosition::GM, "AscendC::Matmul::SetTensorA: A's position is not GM");
    take(state_.a, gm.pointer(), isTransposeA, "Matmul::SetTensorA");
    state_.a.cached = gm.IsCached();
    changed(true, false);
  }
  ASCENDC_INLINE void SetTensorB(const GlobalTensor<SrcBT>& gm, bool isTransposeB = false) {
    static_assert(B_TYPE::pos == TPosition::GM, "AscendC::Matmul::SetTensorB: B's position is not GM");
    take(state_.b, gm.pointer(), isTransposeB, "Matmul::SetTensorB");
    state_.b.cached = gm.IsCached();
    changed(false, true);
  }
  ASCENDC_INLINE void SetTensorA(const LocalTensor<SrcAT>& leftMatrix, bool isTransposeA = false) {
    static_assert(matmul_inner::may_be_local(A_TYPE::pos), "AscendC::Matmul::SetTensorA: A's position is not local");
    take(state_.a, leftMatrix.pointer(), isTransposeA, "Matmul::SetTensorA");
    if (state_.a.in_ub) bring(vnpu::MatmulArea::A, leftMatrix, "Matmul::SetTensorA");
    changed(true, false);
  }
  ASCENDC_INLINE void SetTensorB(const LocalTensor<SrcBT>& rightMatrix, bool isTransposeB = false) {
    static_assert(matmul_inner::may_be_local(B_TYPE::pos), "AscendC::Matmul::SetTensorB: B's position is not local");
    take(state_.b, rightMatrix.pointer(), isTransposeB, "Matmul::SetTensorB");
    if (state_.b.in_ub) bring(vnpu::MatmulArea::B, rightMatrix, "Matmul::SetTensorB");
    changed(false, true);
  }
  ASCENDC_INLINE void SetTensorA(SrcAT) {
    static_assert(matmul_inner::matmul_covers<A_TYPE>,
                  "AscendC::Matmul::SetTensorA with a scalar is not covered by the virtual NPU");
  }
  // Which elements of B are there: two bits each, of tiles of 16 x 8 bytes that lie as NZ (AscendC reference).
  ASCENDC_INLINE void SetSparseIndex(const GlobalTensor<uint8_t>& indexGlobal) {
    static_assert(matmul_inner::is_sparse<B_TYPE>,
                  "AscendC::Matmul::SetSparseIndex: B's type has to be SparseMatmulType");
    state_.places = indexGlobal.pointer();
    changed(false, true);
  }
  ASCENDC_INLINE void SetBias(const GlobalTensor<BiasT>& biasGlobal) {
    state_.bias.data = biasGlobal.pointer();
    state_.bias.cached = biasGlobal.IsCached();
    state_.with_bias = true;
  }
  ASCENDC_INLINE void SetBias(const LocalTensor<BiasT>& inputBias) {
    static_assert(matmul_inner::in_unified_buffer(BIAS_TYPE::pos),
                  "AscendC::Matmul::SetBias: the bias' position is not the Unified Buffer");
    bring(vnpu::MatmulArea::Bias, inputBias, "Matmul::SetBias");
    state_.with_bias = true;
  }
  ASCENDC_INLINE void ClearBias() { state_.with_bias = false; }
  ASCENDC_INLINE void DisableBias() { state_.with_bias = false; }
  ASCENDC_INLINE void SetQuantScalar(const uint64_t quantScalar) {
    state_.word = quantScalar;
    state_.words = nullptr;
  }
  ASCENDC_INLINE void SetQuantVector(const GlobalTensor<uint64_t>& quantTensor) {
    state_.words = quantTensor.pointer();
  }
  ASCENDC_INLINE void SetUserDefInfo(const uint64_t tilingPtr) { state_.user_tiling = tilingPtr; }
  template <typename T>
  ASCENDC_INLINE void SetSelfDefineData(const T dataPtr) {
    state_.user_data = static_cast<uint64_t>(dataPtr);
  }
  // The vector core of a group that asks; cube cores alone have none.
  ASCENDC_INLINE void SetSubBlockIdx(uint8_t) {}
  ASCENDC_INLINE uint8_t GetSubBlockIdx() { return 0; }
  // Unified Buffer that other architectures need.
  ASCENDC_INLINE void SetLocalWorkspace(const LocalTensor<uint8_t>&) {}
  template <typename T>
  ASCENDC_INLINE void SetWorkspace(GlobalTensor<T>& addr) {
    state_.workspace = addr.pointer();
  }
  template <typename T>
  ASCENDC_INLINE void SetWorkspace(const T* addr, int) {
    state_.workspace = const_cast<T*>(addr);
  }
  // The same registers as SetHF32Mode's and SetHF32TransMode's; on vector cores only false.
  ASCENDC_INLINE void SetHF32(bool enableHF32 = false, int32_t transMode = 0) {
    vnpu::matmul_short_floats(enableHF32, transMode == 1, "Matmul::SetHF32");
  }

  // ---- multiplying ----
  template <bool sync = true>
  ASCENDC_INLINE bool Iterate(bool enPartialSum = false) {
    static_assert(!batched, "AscendC::Matmul: matrices with a LayoutMode are multiplied by IterateBatch alone");
    static_assert(C_TYPE::pos != TPosition::CO1, "AscendC::Matmul::Iterate: with C in CO1, a tensor has to be given");
    if constexpr (sync)
      return vnpu::matmul_next(state_, enPartialSum, nullptr, "Matmul::Iterate");
    else
      return vnpu::matmul_start(state_, "Matmul::Iterate");
  }
  template <bool sync = true, typename T>
  ASCENDC_INLINE bool Iterate(bool enPartialSum, const LocalTensor<T>& localCmatrix) {
    static_assert(!batched, "AscendC::Matmul: matrices with a LayoutMode are multiplied by IterateBatch alone");
    static_assert(C_TYPE::pos == TPosition::CO1, "AscendC::Matmul::Iterate: a tensor of L0C is for C in CO1");
    return vnpu::matmul_next(state_, enPartialSum, localCmatrix.pointer(), "Matmul::Iterate");
  }
  template <bool sync = true>
  ASCENDC_INLINE void IterateAll(const GlobalTensor<DstT>& gm, uint8_t enAtomic = 0, bool enSequentialWrite = false,
                                 bool waitIterateAll = false, bool /*fakeMsg*/ = false) {
    static_assert(!batched, "AscendC::Matmul: matrices with a LayoutMode are multiplied by IterateBatch alone");
    static_assert(!config.isPartialOutput,
                  "AscendC::Matmul::IterateAll: not with isPartialOutput (AscendC reference): Iterate and GetTensorC");
    goes_to(gm, enAtomic);
    state_.c.pitch = enSequentialWrite ? columns_of_one_block() : 0;
    vnpu::matmul_all(state_, gm.pointer(), sync, waitIterateAll, "Matmul::IterateAll");
    state_.c.pitch = 0;
  }
  // All of C to the Unified Buffer: as many elements as the tensor has, in the order that C has in global memory.
  // Limit of IterateAll: not to TSCM.
  template <bool sync = true>
  ASCENDC_INLINE void IterateAll(const LocalTensor<DstT>& ubCmatrix, uint8_t enAtomic = 0) {
    static_assert(!batched, "AscendC::Matmul: matrices with a LayoutMode are multiplied by IterateBatch alone");
    static_assert(sync, "AscendC::Matmul::IterateAll: to local memory only with sync");
    static_assert(C_TYPE::pos != TPosition::TSCM, "AscendC::Matmul::IterateAll to TSCM is not covered");
    static_assert(!own_way_out, "AscendC::MatmulCallBackFunc: DataCopyOut is for C in global memory");
    if (enAtomic != 0) vnpu::misuse("Matmul::IterateAll", "enAtomic is for global memory");
    state_.atomic = 0;
    vnpu::matmul_all_local(state_, ubCmatrix.pointer(), uint64_t(ubCmatrix.GetSize()) * sizeof(DstT),
                           "Matmul::IterateAll");
  }
  template <bool sync = true>
  ASCENDC_INLINE void GetTensorC(const GlobalTensor<DstT>& gm, uint8_t enAtomic = 0, bool enSequentialWrite = false) {
    goes_to(gm, enAtomic);
    vnpu::matmul_out(state_, gm.pointer(), enSequentialWrite, "Matmul::GetTensorC");
  }
  // A block by itself, whatever enSequentialWrite says.
  template <bool sync = true, bool doPad = false>
  ASCENDC_INLINE void GetTensorC(const LocalTensor<DstT>& co2Local, uint8_t enAtomic = 0, bool = false, uint32_t = 0,
                                 uint32_t = 0, uint32_t = 0, uint32_t = 0) {
    static_assert(!own_way_out, "AscendC::MatmulCallBackFunc: DataCopyOut is for C in global memory");
    if (enAtomic != 0) vnpu::misuse("Matmul::GetTensorC", "enAtomic is for global memory");
    state_.atomic = 0;
    if constexpr (sync)
      vnpu::matmul_out_local(state_, co2Local.pointer(), "Matmul::GetTensorC");
    else
      vnpu::matmul_take_local(state_, co2Local.pointer(), true, "Matmul::GetTensorC");
  }
  // To global memory, and from there to the Unified Buffer: as many elements as the tensor has.
  template <bool sync = true>
  ASCENDC_INLINE void GetTensorC(const GlobalTensor<DstT>& gm, const LocalTensor<DstT>& co2Local, uint8_t enAtomic = 0,
                                 bool enSequentialWrite = false) {
    GetTensorC(gm, enAtomic, enSequentialWrite);
    vnpu::matmul_copy_local(co2Local.pointer(), gm.pointer(), uint64_t(co2Local.GetSize()) * sizeof(DstT),
                            "Matmul::GetTensorC");
  }
  // A block of Iterate<false>, for which V doesn't wait but at WaitGetTensorC.
  ASCENDC_INLINE void AsyncGetTensorC(const LocalTensor<DstT>& c) {
    static_assert(!own_way_out, "AscendC::MatmulCallBackFunc: DataCopyOut is for C in global memory");
    state_.atomic = 0;
    vnpu::matmul_take_local(state_, c.pointer(), false, "Matmul::AsyncGetTensorC");
  }
  ASCENDC_INLINE void WaitGetTensorC() { vnpu::matmul_local_is_there(); }
  // Where in the workspace the next of the blocks lies that Iterate<false> has asked for; `sync` says nothing here
  // (asc-devkit, matmul_client.h).
  template <bool sync = true>
  ASCENDC_INLINE GlobalTensor<DstT> GetTensorC(uint8_t = 0, bool = false) {
    GlobalTensor<DstT> block;
    block.SetGlobalBuffer(static_cast<DstT*>(vnpu::matmul_take(state_, "Matmul::GetTensorC")));
    return block;
  }
  ASCENDC_INLINE void WaitIterateAll() { vnpu::matmul_wait(state_); }

  // ---- batches, on cube cores alone ----
  ASCENDC_INLINE void SetBatchNum(int32_t batchA, int32_t batchB) {
    batch_a_ = batchA;
    batch_b_ = batchB;
  }
  // How many matrices of C leave at once; with BatchOutMode::SINGLE_BATCH it is one (asc-devkit, batch_matmul_impl.h).
  ASCENDC_INLINE void SetNBatchOutNum(int32_t nBatchOutNum) { batch_out_ = nBatchOutNum; }
  ASCENDC_INLINE void IterateBatch(const GlobalTensor<DstT>& gm, bool enPartialSum, uint8_t enAtomic,
                                   bool enSequentialWrite, const uint32_t matrixStrideA = 0,
                                   const uint32_t matrixStrideB = 0, const uint32_t matrixStrideC = 0) {
    const auto call = batch(batch_a_, batch_b_, enSequentialWrite, matrixStrideA, matrixStrideB, matrixStrideC);
    to_batch(gm, call, enPartialSum, enAtomic, true, false);
  }
  ASCENDC_INLINE void IterateBatch(const LocalTensor<DstT>& ubCmatrix, bool enPartialSum, uint8_t enAtomic,
                                   bool enSequentialWrite, const uint32_t matrixStrideA = 0,
                                   const uint32_t matrixStrideB = 0, const uint32_t matrixStrideC = 0) {
    const auto call = batch(batch_a_, batch_b_, enSequentialWrite, matrixStrideA, matrixStrideB, matrixStrideC);
    to_local_batch(ubCmatrix, call, enPartialSum, enAtomic);
  }
  ASCENDC_INLINE void End() {
    state_.with_bias = false;
    changed(true, true);
    vnpu::matmul_end(state_);
  }

 protected:
  // enSequentialWrite of IterateAll: every block goes to the same place, its rows behind each other (asc-devkit,
  // GetResultImpl), which gives C where it is one block.
  ASCENDC_INLINE int32_t columns_of_one_block() const {
    const char* const api = "Matmul::IterateAll";
    const vnpu::MatmulCut& cut = state_.cut;
    if (!state_.tiled) vnpu::misuse(api, "enSequentialWrite needs the vector core's tiling");
    if (cut.m > cut.base_m || cut.n > cut.base_n)
      vnpu::misuse(api,
                   "with enSequentialWrite every block goes to the same place: it is for one block (baseM, baseN no "
                   "less than singleCoreM, singleCoreN)");
    if (C_TYPE::format == CubeFormat::NZ && (state_.org_m + 15) / 16 != (cut.m + 15) / 16)
      vnpu::unsupported(api, "enSequentialWrite in NZ where C has more rows than the block");
    return cut.n;
  }
  ASCENDC_INLINE vnpu::BatchCall batch(uint32_t a, uint32_t b, bool in_sequence, uint32_t stride_a, uint32_t stride_b,
                                       uint32_t stride_c) const {
    static_assert(batched, "AscendC::Matmul::IterateBatch: A and B need a LayoutMode (MatmulType)");
    if (stride_c != 0) vnpu::misuse("Matmul::IterateBatch", "matrixStrideC is reserved: 0 (AscendC reference)");
    if (config.bmmOutMode != BatchOutMode::SINGLE_BATCH) vnpu::matmul_needs_tiling(state_, "Matmul::IterateBatch");
    matmul_inner::check_gathered(config.bmmOutMode, state_.cut, batch_out_);
    vnpu::BatchCall call;
    call.count_a = static_cast<int32_t>(a);
    call.count_b = static_cast<int32_t>(b);
    call.in_sequence = in_sequence;
    call.stride_a = stride_a;
    call.stride_b = stride_b;
    return call;
  }
  ASCENDC_INLINE void to_batch(const GlobalTensor<DstT>& gm, vnpu::BatchCall call, bool add, uint8_t atomic, bool wait,
                               bool later) {
    call.add = add;
    goes_to(gm, atomic);
    vnpu::matmul_batch(state_, gm.pointer(), call, wait, later, "Matmul::IterateBatch");
  }
  ASCENDC_INLINE void to_local_batch(const LocalTensor<DstT>& to, vnpu::BatchCall call, bool add, uint8_t atomic) {
    if (atomic != 0) vnpu::misuse("Matmul::IterateBatch", "enAtomic is for global memory");
    call.add = add;
    state_.atomic = 0;
    vnpu::matmul_batch_local(state_, to.pointer(), uint64_t(to.GetSize()) * sizeof(DstT), call, "Matmul::IterateBatch");
  }
  ASCENDC_INLINE vnpu::Matmul& state() { return state_; }
  // What kernels without ASCENDC_CUBE_ONLY call: see MatmulClient.
  static constexpr bool several_calls = config.isNBatch;
  static constexpr bool in_order = A_TYPE::layout != LayoutMode::NORMAL && C_TYPE::layout != LayoutMode::NORMAL;

 private:
  friend struct matmul_inner::Registration;

  // What the types and the tiling say.
  ASCENDC_INLINE void describe(const TCubeTiling& t) {
    state_.configuration.packets = config.doMultiDataLoad || config.doSpecialMDL;
    state_.configuration.unit_flag = config.enUnitFlag;
    state_.configuration.split = config.isEnableChannelSplit;
    state_.configuration.partial = config.isPartialOutput;
    state_.configuration.shared = A_TYPE::ibShare && B_TYPE::ibShare;
    state_.configuration.sparse = matmul_inner::is_sparse<B_TYPE>;
    using Policy = MATMUL_POLICY<MM_CFG, MatmulImpl, A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE>;  // a kernel may have its own
    state_.configuration.triangle = Policy::triangle;
    state_.configuration.constant_tiling = matmul_inner::is_constant(MM_CFG);
    state_.configuration.scalar_instructions = scalar_instructions;
    describe(state_.a, A_TYPE::pos, A_TYPE::format, vnpu::dtype_of<SrcAT>(), A_TYPE::isTrans);
    describe(state_.b, B_TYPE::pos, B_TYPE::format, vnpu::dtype_of<SrcBT>(), B_TYPE::isTrans);
    describe(state_.c, C_TYPE::pos, C_TYPE::format, vnpu::dtype_of<DstT>(), false);
    state_.c.in_l1 = C_TYPE::pos == TPosition::CO1;
    describe(state_.bias, BIAS_TYPE::pos, BIAS_TYPE::format, vnpu::dtype_of<BiasT>(), false);
    state_.copy_a = matmul_inner::own_copy<MM_CB::copy_a1>();
    state_.copy_b = matmul_inner::own_copy<MM_CB::copy_b1>();
    state_.copy_out = matmul_inner::own_copy_out<MM_CB::data_copy_out>();
    state_.cut = matmul_inner::cut_of(t);
    state_.batches = matmul_inner::batches_of(t);
    state_.batches.a.layout = matmul_inner::batches_of(A_TYPE::layout);
    state_.batches.b.layout = matmul_inner::batches_of(B_TYPE::layout);
    state_.batches.c.layout = matmul_inner::batches_of(C_TYPE::layout);
    state_.batches.room = matmul_inner::room_of(config.batchMode);
    state_.batches.own_bias = config.isBiasBatch;
    state_.org_m = t.M;
    state_.org_n = t.N;
    state_.org_ka = t.Ka;
    state_.org_kb = t.Kb;
    state_.own = {};
    state_.tiled = true;
    changed(true, true);
  }
  // Null where only the cube core's program has the tiling.
  ASCENDC_INLINE void register_at(int32_t place, const TCubeTiling* tiling) {
    const bool asked = vnpu::matmul_is_asked(), tiled = has_tiling(tiling);
    describe(asked && !tiled ? TCubeTiling{} : matmul_inner::tiling_of(MM_CFG, tiling));
    state_.registered = asked ? place : -1;
    state_.tiled = tiled;
    vnpu::matmul_init(state_, "Matmul::Init");
  }
  ASCENDC_INLINE void offer(const TCubeTiling* tiling) {
    state_.tiled = has_tiling(tiling);
    if (state_.tiled) describe(matmul_inner::tiling_of(MM_CFG, tiling));
    vnpu::matmul_offer(state_);
  }
  ASCENDC_INLINE static bool has_tiling(const TCubeTiling* tiling) {
    return tiling != nullptr || matmul_inner::is_constant(MM_CFG);
  }

  // Scalar instructions that a product costs beside those that the cube core sees: see docs/cube.md, high-level Matmul.
  static constexpr int scalar_instructions = matmul_inner::is_constant(MM_CFG) ? 8 : config.doMultiDataLoad ? 21 : 40;

  ASCENDC_INLINE void changed(bool a, bool b) {
    state_.version_a += a;
    state_.version_b += b;
  }
  ASCENDC_INLINE static void describe(vnpu::Matrix& m, TPosition position, CubeFormat format, vnpu::DType dtype,
                                      bool may_turn) {
    m.dtype = dtype;
    m.layout = matmul_inner::layout_of(format);
    m.in_l1 = matmul_inner::in_l1(position);
    m.in_ub = matmul_inner::in_unified_buffer(position);
    m.may_turn = may_turn;
  }
  ASCENDC_INLINE static void take(vnpu::Matrix& m, const void* data, bool turned, const char* api) {
    if (turned && !m.may_turn) vnpu::misuse(api, "a transposed matrix needs MatmulType's ISTRANS");
    m.data = data;
    m.turned = turned;
  }
  template <typename T>
  ASCENDC_INLINE void bring(vnpu::MatmulArea which, const LocalTensor<T>& from, const char* api) {
    vnpu::matmul_bring(state_, which, from.pointer(), (uint64_t(from.GetLength()) + 31) / 32 * 32, api);
  }
  ASCENDC_INLINE void goes_to(const GlobalTensor<DstT>& gm, uint8_t kind) {
    if (kind > 3) vnpu::misuse("Matmul", "enAtomic is 0 to 3");
    state_.c.cached = gm.IsCached();
    state_.atomic = kind;
  }

  vnpu::Matmul state_;
  int32_t batch_a_ = 0, batch_b_ = 0, batch_out_ = 1;
};

// Matmul of kernels for both kinds of cores, as lib/matmul_intf.h names it: batches are asked for with their numbers.
template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE, const auto& MM_CFG = CFG_NORM,
          class MM_CB = MatmulCallBackFunc<nullptr, nullptr, nullptr>, MATMUL_POLICY_DEFAULT_OF(MatmulPolicy)>
class MatmulClient : public MatmulImpl<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB, MATMUL_POLICY> {
  using Base = MatmulImpl<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB, MATMUL_POLICY>;
  using DstT = typename C_TYPE::T;
  static_assert(!matmul_inner::config_of(MM_CFG).enableMixDualMaster,
                "AscendC::Matmul: enableMixDualMaster is covered by the virtual NPU with ASCENDC_CUBE_ONLY alone");
  static_assert(!matmul_inner::is_sparse<B_TYPE>,
                "AscendC::SparseMatmulType is for kernels on cube cores alone: ASCENDC_CUBE_ONLY (AscendC reference)");

 public:
  template <bool sync = true, bool waitIterateBatch = false>
  ASCENDC_INLINE void IterateBatch(const GlobalTensor<DstT>& gm, uint32_t batchA, uint32_t batchB,
                                   bool enSequentialWrite, const uint32_t matrixStrideA = 0,
                                   const uint32_t matrixStrideB = 0, const uint32_t matrixStrideC = 0,
                                   const bool enPartialSum = false, const uint8_t enAtomic = 0) {
    const auto call = Base::batch(batchA, batchB, enSequentialWrite, matrixStrideA, matrixStrideB, matrixStrideC);
    Base::to_batch(gm, call, enPartialSum, enAtomic, sync, waitIterateBatch);
  }
  template <bool sync = true>
  ASCENDC_INLINE void IterateBatch(const LocalTensor<DstT>& ubCmatrix, uint32_t batchA, uint32_t batchB,
                                   bool enSequentialWrite, const uint32_t matrixStrideA = 0,
                                   const uint32_t matrixStrideB = 0, const uint32_t matrixStrideC = 0,
                                   const bool enPartialSum = false, const uint8_t enAtomic = 0) {
    static_assert(sync, "AscendC::Matmul::IterateBatch: to the Unified Buffer only with sync (AscendC reference)");
    const auto call = Base::batch(batchA, batchB, enSequentialWrite, matrixStrideA, matrixStrideB, matrixStrideC);
    Base::to_local_batch(ubCmatrix, call, enPartialSum, enAtomic);
  }
  template <bool sync = true, bool waitIterateBatch = false>
  ASCENDC_INLINE void IterateNBatch(const uint32_t batchLoop, uint32_t batchA, uint32_t batchB, bool enSequentialWrite,
                                    const uint32_t matrixStrideA = 0, const uint32_t matrixStrideB = 0,
                                    const uint32_t matrixStrideC = 0) {
    static_assert(Base::several_calls, "AscendC::Matmul::IterateNBatch: MatmulConfig has to have isNBatch");
    static_assert(Base::in_order, "AscendC::Matmul::IterateNBatch: not for LayoutMode::NORMAL (AscendC reference)");
    const auto call = Base::batch(batchA, batchB, enSequentialWrite, matrixStrideA, matrixStrideB, matrixStrideC);
    vnpu::matmul_batches(Base::state(), batchLoop, call, sync, waitIterateBatch, "Matmul::IterateNBatch");
  }
  // Of IterateNBatch<false>, the next of its batches: where it lies in the workspace, as C's layout has it.
  template <bool sync = true>
  ASCENDC_INLINE GlobalTensor<DstT> GetBatchTensorC(uint32_t batchA, uint32_t batchB, bool enSequentialWrite = false) {
    static_assert(!sync, "AscendC::Matmul::GetBatchTensorC is for sync = false (AscendC reference)");
    const auto call = Base::batch(batchA, batchB, enSequentialWrite, 0, 0, 0);
    GlobalTensor<DstT> c;
    c.SetGlobalBuffer(static_cast<DstT*>(vnpu::matmul_take_batch(Base::state(), call, "Matmul::GetBatchTensorC")));
    return c;
  }
  template <bool sync = true>
  ASCENDC_INLINE void GetBatchTensorC(const LocalTensor<DstT>& c, uint32_t batchA, uint32_t batchB,
                                      bool enSequentialWrite = false) {
    static_assert(!sync, "AscendC::Matmul::GetBatchTensorC is for sync = false (AscendC reference)");
    const auto call = Base::batch(batchA, batchB, enSequentialWrite, 0, 0, 0);
    vnpu::matmul_take_batch_local(Base::state(), c.pointer(), call, "Matmul::GetBatchTensorC");
  }
  template <bool sync = true>
  ASCENDC_INLINE GlobalTensor<DstT> GetBatchC(uint32_t batchA, uint32_t batchB, bool enSequentialWrite = false) {
    return GetBatchTensorC<sync>(batchA, batchB, enSequentialWrite);
  }
  template <bool sync = true>
  ASCENDC_INLINE void GetBatchC(const LocalTensor<DstT>& c, uint32_t batchA, uint32_t batchB,
                                bool enSequentialWrite = false) {
    GetBatchTensorC<sync>(c, batchA, batchB, enSequentialWrite);
  }
  ASCENDC_INLINE void WaitIterateBatch() { vnpu::matmul_wait(Base::state()); }
};

namespace matmul_inner {

template <typename T>
ASCENDC_INLINE const TCubeTiling* tiling_pointer(const T* tiling) {
  return static_cast<const TCubeTiling*>(static_cast<const void*>(tiling));
}
ASCENDC_INLINE const TCubeTiling* tiling_pointer(std::nullptr_t) { return nullptr; }
ASCENDC_INLINE const TCubeTiling* tiling_pointer(const TCubeTiling& tiling) { return &tiling; }

// Not is_pointer: a pointer that is __restrict is none.
template <typename T>
constexpr bool is_tiling = std::is_convertible_v<T, const void*> || std::is_same_v<T, TCubeTiling>;

// REGIST_MATMUL_OBJ: objects, each followed by its tiling or not (Init brings it then).
// The names tell which cores a kernel is for that says nothing (runtime/rtc_scan.cpp).
struct Registration {
  template <typename... Objects>
  ASCENDC_INLINE static void register_matmul(Objects&&... objects) {
    each(
        0,
        [](int32_t place, auto& object, auto tiling) {
          vnpu::expect_to_ask(object.state_);
          if constexpr (!std::is_null_pointer_v<decltype(tiling)>) object.register_at(place, tiling);
        },
        objects...);
  }
  // The cube core's program of a mixed kernel: vector cores' objects take the tilings of those at the same places.
  template <typename... Objects>
  ASCENDC_INLINE static bool serve_matmul(Objects&&... objects) {
    if (!vnpu::matmul_may_serve()) return false;
    each(0, [](int32_t, auto& object, auto tiling) { object.offer(tiling); }, objects...);
    vnpu::matmul_serve();
    return true;
  }

 private:
  // f(place, object, its tiling or nullptr) of each.
  template <typename F>
  ASCENDC_INLINE static void each(int32_t, F) {}
  template <typename F, typename M>
  ASCENDC_INLINE static void each(int32_t place, F f, M& object) {
    f(place, object, nullptr);
  }
  template <typename F, typename M, typename T, typename... Rest>
  ASCENDC_INLINE static void each(int32_t place, F f, M& object, T&& next, Rest&&... rest) {
    if constexpr (is_tiling<std::decay_t<T>>) {
      f(place, object, tiling_pointer(next));
      if constexpr (sizeof...(rest) > 0) each(place + 1, f, rest...);
    } else {
      f(place, object, nullptr);
      each(place + 1, f, next, rest...);
    }
  }
};
}  // namespace matmul_inner
}  // namespace AscendC::matmul_api
