# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""What is no module of PyTorch in place of a model is an error that says so."""

import unittest

import fp8
import fp8.torch


class WrongModels(unittest.TestCase):
    def test_no_module(self):
        for function in (lambda model: fp8.torch.quantize_for_inference(model, "rowwise"),
                         lambda model: fp8.torch.convert_to_fp8_training(model, "current"),
                         lambda model: fp8.torch.save_quantized(model, "nowhere"),
                         lambda model: fp8.torch.load_quantized(model, "nowhere"), fp8.torch.summarize, fp8.torch.report):
            with self.assertRaisesRegex(fp8.ArgumentError, "expected the model to be a torch.nn.Module, but got dict"):
                function({})


if __name__ == "__main__":
    unittest.main()
