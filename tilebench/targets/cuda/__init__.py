"""The CUDA target: machines, the compiler NVRTC, SASS, occupancy and launch by the driver API."""
