"""Which rule speaks for which message: wordings of many libraries and versions, each as a traceback of its own."""

from __future__ import annotations

import pytest

from traindx_tools.on_logs.run import Run
from traindx_tools.on_logs.tracebacks import read_errors
from traindx_tools.rules import rules_in

LIBRARY = "/opt/conda/lib/python3.10/site-packages/"

WORDINGS = (
    ("L502", "RuntimeError: CUDA error: unspecified launch failure"),
    ("L502", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"),
    ("L502", "RuntimeError: CUDA error: uncorrectable ECC error encountered"),
    ("L501", "torch.AcceleratorError: CUDA error: device-side assert triggered"),
    ("L503",
     "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle, opa, opb, m, n, k, "
             "&alpha, a, lda, b, ldb, &beta, c, ldc)`"),
    ("L503", "RuntimeError: CUDA error: CUBLAS_STATUS_INTERNAL_ERROR when calling `cublasCreate(handle)`"),
    ("L503", "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR"),
    ("L504", "IndexError: Dimension out of range (expected to be in range of [-1, 0], but got 1)"),
    ("L504", "IndexError: tuple index out of range"),
    ("L504", "IndexError: index 512 is out of bounds: 0, range 0 to 512"),
    ("L504", "IndexError: Invalid key: 977 is out of bounds for size 0"),
    ("L505", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x400 and 120x84)"),
    ("L505", "RuntimeError: size mismatch, m1: [64 x 400], m2: [120 x 84] at "
             "/pytorch/aten/src/THC/generic/THCTensorMathBlas.cu:283"),
    ("L505", "RuntimeError: The expanded size of the tensor (768) must match the existing size (512) at "
             "non-singleton dimension 1."),
    ("L505", "RuntimeError: output with shape [8, 1] doesn't match the broadcast shape [8, 8]"),
    ("L505",
     "RuntimeError: Given normalized_shape=[768], expected input with shape [*, 768], but got input of size[4, 512]"),
    ("L505", "RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension "
             "spans across "
             "two contiguous subspaces). Use .reshape(...) instead."),
    ("L505",
     "RuntimeError: Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [1, 1, 3, 28, 28]"),
    ("L505",
     "ValueError: matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature (n?,k),(k,m?)->"
             "(n?,m?) (size 3 is different from 4)"),
    ("L505", "ValueError: cannot reshape array of size 784 into shape (32,32)"),
    ("L505", "flax.errors.ScopeParamShapeError: Initializer expected to generate shape (10, 4) but got shape (12, 4) "
             "instead for "
             "parameter \"kernel\" in \"/Dense_0\"."),
    ("L505", "ValueError: vmap got inconsistent sizes for array axes to be mapped:"),
    ("L505",
     "ValueError: Unable to create tensor, you should probably activate truncation and/or padding with 'padding=True'"),
    ("L506", "RuntimeError: expected m1 and m2 to have the same dtype, but got: float != c10::BFloat16"),
    ("L506", "RuntimeError: expected scalar type Half but found Float"),
    ("L506", "RuntimeError: Index put requires the source and destination dtypes match, got Half for the destination "
             "and Float for "
             "the source."),
    ("L506", "RuntimeError: \"addmm_impl_cpu_\" not implemented for 'Half'"),
    ("L506", "TypeError: grad requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
             "np.inexact), but got int32."),
    ("L506", "TypeError: lax.add requires arguments to have the same dtypes, got float32, bfloat16."),
    ("L506", "TypeError: can't convert np.ndarray of type numpy.object_."),
    ("L507", "RuntimeError: Expected all tensors to be on the same device, but got mat2 is on cpu, different from "
             "other tensors on "
             "cuda:0 (when checking argument in method wrapper_CUDA_mm)"),
    ("L507",
     "RuntimeError: Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same"),
    ("L506", "RuntimeError: Input type (float) and bias type (c10::Half) should be the same"),
    ("L507", "RuntimeError: indices should be either on cpu or on the same device as the indexed tensor (cpu)"),
    ("L507", "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to "
             "host memory first."),
    ("L507", "NotImplementedError: Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty()"),
    ("L508",
     "RuntimeError: CUDA out of memory. Tried to allocate 2.26 GiB (GPU 0; 6.00 GiB total capacity; 781.59 MiB already "
             "allocated; 3.03 GiB free; 1.24 GiB reserved in total by PyTorch)"),
    ("L508", "RuntimeError: MPS backend out of memory (MPS allocated: 17.05 GB, other allocations: 1.00 GB, max "
             "allowed: 18.13 GB). "
             "Tried to allocate 256.00 MB on private pool."),
    ("L508", "RuntimeError: CUDA error: out of memory"),
    ("L509", "MemoryError"),
    ("L509", "MemoryError: resident memory 675M above the job limit of 640M"),
    ("L509", "numpy.core._exceptions.MemoryError: Unable to allocate 12.0 GiB for an array with shape (1,) and data "
             "type float64"),
    ("L509", "subprocess.CalledProcessError: Command '['python', 'train.py']' died with <Signals.SIGKILL: 9>."),
    ("L510", "RuntimeError: DataLoader worker (pid(s) 1234, 1240) exited unexpectedly"),
    ("L510",
     "RuntimeError: unable to open shared memory object </torch_29919_1396182366> in read-write mode: worker died"),
    ("L510", "RuntimeError: received 0 items of ancdata"),
    ("L510", "RuntimeError: DataLoader timed out after 60 seconds"),
    ("L511", "RuntimeError: Trying to backward through the graph a second time, but the saved intermediate results "
             "have already been "
             "freed. Specify retain_graph=True when calling backward the first time."),
    ("L512", "RuntimeError: a view of a leaf Variable that requires grad is being used in an in-place operation."),
    ("L513", "RuntimeError: unscale_() is being called after step()."),
    ("L513", "AssertionError: No inf checks were recorded for this optimizer."),
    ("L514", "ValueError: optimizer got an empty parameter list"),
    ("L514", "RuntimeError: One of the differentiated Tensors appears to not have been used in the graph. Set "
             "allow_unused=True"),
    ("L515", "torch.distributed.DistBackendError: NCCL error in: "
             "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1333, unhandled "
             "system error, NCCL version 2.18.1"),
    ("L515", "RuntimeError: Rank 1 failed to pass monitoredBarrier in 1800000 ms"),
    ("L515", "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: "
             "CollectiveFingerPrint("
             "SequenceNumber=7, OpType=ALLREDUCE"),
    ("L516", "jax.errors.ConcretizationTypeError: Abstract tracer value encountered where concrete value is "
             "expected: traced array "
             "with shape float32[]."),
    ("L516", "jax._src.errors.UnexpectedTracerError: Encountered an unexpected tracer. A function transformed by JAX "
             "had a side "
             "effect, allowing for a reference to an intermediate value with type float32[] wrapped in a "
             "DynamicJaxprTracer"),
    ("L517", "TypeError: scan body function carry input and carry output must have the same pytree structure, but "
             "they differ:"),
    ("L517", "TypeError: body_fun output and input must have identical types, "
             "got\nShapedArray(float32[])\nand\nShapedArray(int32[])."),
    ("L517",
     "TypeError: while_loop body function carry input and carry output must have equal types, but they differ:"),
    ("L518", "RuntimeError: Error(s) in loading state_dict for Net:\n\tUnexpected key(s) in state_dict: \"a\", \"b\"."),
    ("L518", "ValueError: loaded state dict has a different number of parameter groups"),
    ("L519",
     "ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 64, 1, 1])"),
    ("L520", "ValueError: Expected input batch_size (32) to match target batch_size (64)."),
    ("L520", "ValueError: Target size (torch.Size([8])) must be the same as input size (torch.Size([8, 1]))"),
    ("L520", "RuntimeError: 0D or 1D target tensor expected, multi-target not supported"),
    ("L520", "RuntimeError: expected scalar type Long but found Int in nll_loss expected 'Int"),
    ("L521", "RuntimeError: Expected to mark a variable ready only once. This error is caused by one of the "
             "following reasons: 1) Use "
             "of a module parameter outside the `forward` function. Parameter at index 95 with name layers.11.b has "
             "been marked"),
    ("L522", "OSError: [Errno 28] No space left on device: 'ckpt/1.pt'"),
    ("L522", "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge"),
    ("L522", "_pickle.UnpicklingError: invalid load key, 'v'."),
    ("L522", "EOFError: Ran out of input"),
    ("L522", "OSError: image file is truncated (12 bytes not processed)"),
    ("L522", "PIL.UnidentifiedImageError: cannot identify image file 'a/b.jpg'"),
    ("L522", "UnicodeDecodeError: 'utf-8' codec can't decode byte 0x80 in position 0: invalid start byte"),
    ("L522", "OSError: bert-large is not a local folder and is not a valid model identifier listed on "
             "'https://huggingface.co/models'"),
    ("L522", "datasets.exceptions.DatasetNotFoundError: Dataset 'x/y' doesn't exist on the Hub or cannot be "
             "accessed; does not exist"),
    ("L523", "ValueError: Input X contains NaN."),
    ("L523", "FloatingPointError: Loss became infinite or NaN at iteration=212! loss is nan"),
    ("L523", "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding."),
    ("L523", "RuntimeError: The total norm of order 2.0 for gradients from `parameters` is non-finite, so it cannot "
             "be clipped."),
    ("L523", "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."),
    ("L524", "ImportError: cannot import name 'DtypeLike' from 'jax.typing' (/opt/x.py)"),
    ("L524", "ImportError: /opt/flash_attn_2_cuda.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocation"),
    ("L524", "TypeError: TrainingArguments.__init__() got an unexpected keyword argument 'evaluation_strategy'"),
    ("L524", "AssertionError: Torch not compiled with CUDA enabled"),
    ("L524",
     "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header, got 88"),
    ("L525", "TypeError: Net.__init__() missing 1 required positional argument: 'hidden'"),
    ("L525", "omegaconf.errors.ConfigAttributeError: Key 'lr' is not in struct"),
    ("L525", "omegaconf.errors.MissingMandatoryValue: Missing mandatory value: data.path"),
    ("L525", "AttributeError: 'Namespace' object has no attribute 'warmup'"),
    ("L527", "ValueError: Asking to pad but the tokenizer does not have a padding token. Please select a token to "
             "use as `pad_token`"),
    ("L528", "RuntimeError: The server socket has failed to listen on any local network address. The server socket "
             "has failed to bind "
             "to [::]:29500 (errno: 98 - Address already in use)."),
    ("L528", "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to "
             "connect to (10.0.0.1, "
             "29500)."),
    ("L528", "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable "
             "MASTER_ADDR expected, but "
             "not set"),
    ("L529", "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Failed to launch CUDA kernel"),
    ("L529", "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
             "7406166528 bytes."),
    ("L530", "AssertionError"),
    ("L530", "KeyError: 'labels'"),
    ("L530", "NotImplementedError"),
    ("L530", "AttributeError: 'NoneType' object has no attribute 'shape'"),
    ("L530", "TypeError: unsupported operand type(s) for +: 'Tensor' and 'NoneType'"),
    ("L530", "ZeroDivisionError: division by zero"),
    ("L530", "ValueError: too many values to unpack (expected 2)"),
    ("L530", "RuntimeError: the teacher must not see the future"),
    ("L530", "RecursionError: maximum recursion depth exceeded"),
)


@pytest.mark.parametrize(("rule", "message"), WORDINGS, ids=lambda text: text[:40])
def test_one_rule_speaks_for_the_message(rule: str, message: str) -> None:
    distributed = "torch/distributed/rendezvous.py" if rule == "L528" else "torch/nn/modules/module.py"
    text = (f'Traceback (most recent call last):\n  File "/srv/train.py", line 12, in fit\n    out = step(batch)\n'
            f'  File "{LIBRARY}{distributed}", line 7, in f\n    return g()\n{message}\n')
    run = Run(errors=read_errors(enumerate(text.splitlines(), 1), "log.txt"))
    found = [f for module in rules_in("traindx_tools.on_logs.tracebacks") for f in module.check(run)]
    assert [f.rule for f in found] == [rule]
    assert found[0].where.code == "/srv/train.py:12"


@pytest.mark.parametrize(("message", "kind"), [
    ("MemoryError: host memory +465 MB exceeds the container limit of 450 MB", "own-limit"),
    ("MemoryError", "allocation-refused"),
    ("MemoryError: Unable to allocate 12.0 GiB for an array with shape (1,)", "allocation-refused"),
])
def test_a_limit_of_the_program_itself_is_no_kill(message: str, kind: str) -> None:
    text = f'Traceback (most recent call last):\n  File "/srv/train.py", line 12, in fit\n    check()\n{message}\n'
    run = Run(errors=read_errors(enumerate(text.splitlines(), 1), "log.txt"))
    found = [f for module in rules_in("traindx_tools.on_logs.tracebacks") for f in module.check(run)]
    assert [(f.rule, f.measured["kind"]) for f in found] == [("L509", kind)]
