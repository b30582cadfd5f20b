"""Building: the virtual toolkit, host programs (tiling) and kernel units.

* Toolkit: ``toolkit`` (a real CANN, or the virtual one, built on first use), ``shipped`` (one that was built
  elsewhere), ``headers`` (headers that only lead to another one), ``matmul_headers`` (the high-level Matmul of your
  CANN).
* Host programs: ``host`` compiles an operator's ``op_host`` sources, ``host_program`` runs them, ``host_signature``
  reads what they register. What their sources lack: ``elsewhere`` (functions for other architectures), ``spares``
  (sources of neighbouring operators), ``missing`` (where a header may lie), ``plain_structs`` (tiling data of the
  kernel's header).
* Less to compile: ``knobs`` (numbers of a tiling program in a table), ``blocks`` (those of its blocks that a case
  runs).
* Kernels: ``kernel`` writes the translation unit; ``constants`` (tiling data as constants), ``template_types``
  (which cores run a template), ``torch_code`` (a file without what is PyTorch's), ``system_workspace``.
* What a compiled program may be: ``object`` and ``machine_code``, by ``elf``; ``storage`` (static variables, which
  would outlive a launch; not the cache, which is in ``store/``).
"""
