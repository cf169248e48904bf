#!/bin/sh
# Interesting to fp8-reduce (exit status 1) is a module with a quantize.
! grep -q fp8.quantize "$1"
